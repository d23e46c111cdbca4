"""Changes of settings: the operations of IncrementalAlterConfigs."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

from octavo.broker.refused import Refused
from octavo.broker.wire.messages import Struct
from octavo.errors import ErrorCode

Changes: TypeAlias = dict[str, str | None]  # None deletes a setting


class Operation(IntEnum):
    """What is done with a setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def check_operation(asked: Struct) -> Operation:
    """Return the operation of a change. Raises `Refused`, in the way of Kafka's controller."""
    try:
        return Operation(asked.config_operation)
    except ValueError:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, None) from None


def changed_list(operation: Operation, present: str, given: str) -> str:
    """Return a list after items were added or removed."""
    items = [item for item in present.split(",") if item]
    named = [item.strip() for item in given.split(",")]
    if operation == Operation.APPEND:
        items += [item for item in dict.fromkeys(named) if item not in items]
    else:
        items = [item for item in items if item not in named]
    return ",".join(items)

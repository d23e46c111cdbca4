"""What differs from Apache Kafka on purpose, and why: one table, which docs/broker.md repeats."""

from __future__ import annotations

import re
from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from tests.server.generated.cases import Step

_OF_KAFKA_ALONE = "min.insync.replicas"


# Kafka prints its Java object for a record here.
_OBJECT: Final = re.compile(r" (Partial)?DefaultRecord\(.*?\)\. ")


def without_what_is_meant(step: Step, answer: Any) -> Any:
    """Return an answer without what differs on purpose."""
    if isinstance(answer, dict):
        if answer.get("name") == _OF_KAFKA_ALONE and "config_source" in answer:
            return {"name": _OF_KAFKA_ALONE}
        return {
            key: without_what_is_meant(step, each)
            for key, each in answer.items()
            if key not in ("supported_features", "finalized_features", "api_keys", "documentation")
        }
    if isinstance(answer, str):
        return _OBJECT.sub(". ", answer)
    return [without_what_is_meant(step, each) for each in answer] if isinstance(answer, list) else answer


def is_on_purpose(step: Step, ours: Any, theirs: Any) -> bool:
    """Return whether a difference is meant."""
    if step.api_key == keys.FETCH and step.version >= 13:
        return isinstance(theirs, dict) and theirs["error_code"] == -1 and ours["error_code"] == 0
    return False

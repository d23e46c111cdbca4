"""What opening a log may do where damage lies before sound batches: `Recover`."""

from __future__ import annotations

from enum import Enum
from typing import Final

from octavo.choices import chosen


class Recover(Enum):
    """What opening a log may do where damage lies before sound batches. An incomplete batch at the end is always cut.

    REFUSE: raise `WouldLoseRecords`, and cut nothing
    AS_KAFKA: cut the log at the damage, as Apache Kafka does, and keep the file as it was under another name
    """

    REFUSE = "refuse"
    AS_KAFKA = "as-kafka"


RECOVER_WORDS: Final = {recover.value: recover for recover in Recover}


def recover_of(given: Recover | str) -> Recover:
    """Return what a caller means. Raises `InvalidInput`."""
    return chosen("recover", given, Recover, RECOVER_WORDS)

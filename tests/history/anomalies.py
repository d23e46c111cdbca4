"""What the checker finds: `Anomaly`, and all of them in a `Report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from tests.history.operations import Partition

_SHOWN: Final = 5  # of each kind


class Kind(Enum):
    """The kinds of anomalies; the package's docstring explains them."""

    LOST = "lost write"
    UNSEEN = "unseen"
    DUPLICATE = "duplicate"
    INCONSISTENT = "inconsistent offset"
    PHANTOM = "phantom"
    FAILED_BUT_THERE = "failed but there"
    NONMONOTONIC_SEND = "nonmonotonic send"
    REORDER = "reorder"
    OUT_OF_TIME = "out of time"
    NONMONOTONIC_POLL = "nonmonotonic poll"
    SKIPPED = "skipped"
    ABORTED_READ = "aborted read"
    DIRTY_READ = "dirty read"
    TORN = "torn transaction"
    CYCLE = "cycle"
    PHANTOM_OFFSETS = "phantom offsets"
    LOST_OFFSETS = "lost offsets"
    PROCESSED_TWICE = "processed twice"
    PROCESSED_NEVER = "processed never"


class Anomaly(NamedTuple):
    """Something that must not happen."""

    kind: Kind
    partition: Partition
    what: str

    def __str__(self) -> str:
        topic, number = self.partition
        return f"{self.kind.value} in {topic}-{number}: {self.what}"


class Report:
    """All anomalies of a history."""

    def __init__(self, anomalies: Sequence[Anomaly]) -> None:
        self.anomalies: Final = anomalies

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.anomalies

    @property
    def kinds(self) -> set[Kind]:
        """The kinds that were found."""
        return {each.kind for each in self.anomalies}

    def __str__(self) -> str:
        if self.is_clean:
            return "no anomalies"
        counts = Counter(each.kind for each in self.anomalies)
        lines = [", ".join(f"{kind.value}: {count}" for kind, count in counts.items())]
        for kind in counts:
            lines += [str(each) for each in self.anomalies if each.kind is kind][:_SHOWN]
        return "\n".join(lines)

    __repr__ = __str__

"""Ways to assign partitions to the members of a group. `ASSIGNORS` has them by Kafka's names."""

from __future__ import annotations

from typing import Final

from octavo.coordinator.groups.consumer.assignors import range as by_range
from octavo.coordinator.groups.consumer.assignors import uniform
from octavo.coordinator.groups.consumer.assignors.assignor import Assignor

ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": uniform.assign, "range": by_range.assign}

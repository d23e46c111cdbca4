"""Salvage: new, valid partitions from damaged ones.

salvage           reads the sources, writes the target, and returns a report
SalvageReport     what is kept, what is lost, and why; for each partition a `PartitionReport`
"""

from __future__ import annotations

from octavo.inspect.salvage.report import PartitionReport, SalvageReport
from octavo.inspect.salvage.salvaging import salvage

__all__ = ["PartitionReport", "SalvageReport", "salvage"]

"""Compaction: keep the last record of each key, as Kafka's cleaner does (`LogCleaner`, `LogCleanerManager`).

    plan           what of a log is dirty, what of that can be cleaned, and whether it is time to
    filling        the first pass, over what is dirty: the last offset of every key, in an `offset_map`
    grouping       which segments become one
    filtering      the second pass, over all up to where the map reaches: what stays, by map and `transactions`
    output         the segment that comes of it, with its indexes
    cleaner        both passes, and what may come between
    swap           the output in the place of what it came from

Everything works on blocks of batches, by kernels; only compressed batches, and those of transactions, are looked at one
by one. Memory is that of the map and some blocks; a batch that is larger than a block takes its own size more.
"""

from octavo.log.compaction.stats import CompactionAborted, CompactionProgress, CompactionStats
from octavo.log.compaction.throttle import Throttle

__all__ = ["CompactionAborted", "CompactionProgress", "CompactionStats", "Throttle"]

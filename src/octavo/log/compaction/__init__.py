"""Compaction: keep the last record of each key, as Kafka's cleaner does (`LogCleaner`, `LogCleanerManager`).

    compacting     a clean of a log that is open: may it be cleaned, and what becomes of the result
    plan           which part of a log is dirty, which of that can be cleaned, and whether cleaning is due
    filling        the first pass, over the dirty part: put the last offset of every key into an `offset_map`
    grouping       which segments become one
    filtering      the second pass, from the start to where the map ends: write the batches and records that stay
    retention      which whole batches stay or go, before their records are looked at; for those of transactions
                   `cleaned_transactions` decides
    output         the resulting segment, with its indexes
    cleaner        runs both passes
    swap           puts the output in the place of its source segments

Kernels work on blocks of batches. Only compressed and transactional batches are looked at one by one. Memory is that of
the map and a few blocks; a batch that is larger than a block takes its own size in addition.
"""

from octavo.log.compaction.stats import CompactionProgress, CompactionStats
from octavo.log.compaction.throttle import Throttle

__all__ = ["CompactionProgress", "CompactionStats", "Throttle"]

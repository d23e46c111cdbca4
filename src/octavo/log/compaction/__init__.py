"""Compaction: keep the last record of each key, as Kafka's cleaner does (`LogCleaner`, `LogCleanerManager`).

    compacting     cleans an open log: checks whether it may be cleaned, runs the cleaner, and swaps segments
    plan           determines which part of a log is dirty, how much of it can be cleaned, and whether cleaning is due
    filling        the first pass, over the dirty part: puts the last offset of every key into an `offset_map`
    grouping       chooses the segments that are merged into one
    filtering      the second pass, from the start to where the map ends: writes the batches and records to keep
    retention      decides which whole batches to keep or drop, before their records are read; for transactional
                   batches it asks `cleaned_transactions`
    output         writes the resulting segment, with its indexes
    cleaner        runs both passes
    swap           replaces the source segments by the output

Kernels work on blocks of batches. Only compressed and transactional batches are handled one by one. Memory is needed
for the map and a few blocks; a batch that is larger than a block takes its own size in addition.
"""

from octavo.log.compaction.stats import CompactionProgress, CompactionStats
from octavo.log.compaction.throttle import Throttle

__all__ = ["CompactionProgress", "CompactionStats", "Throttle"]

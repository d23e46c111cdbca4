"""What is in a data directory, in numbers: the survey behind `octavo report`.

    summary.py      `PartitionSummary` and `DirectorySummary`: plain numbers, which processes can send to each other
    survey.py       the summary of one partition, from the headers of its batches
    sampling.py     how well a partition is compressed, from a few batches of it
    gathering.py    the summaries of all partitions, by several processes

Headers are read by kernels, a block of the file at a time. No object is made for a batch or a record, and what is kept
does not grow with the size of a partition.
"""

from __future__ import annotations

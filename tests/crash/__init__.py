"""Crashes: what is left of a data directory when the power goes, or a process is killed.

disk.py          what a disk may hold after a power cut, by the rules of file systems
storage.py       a `Storage` that keeps a journal, and can stop at any operation
crashes.py       crashes of a workload: at any operation, again while it recovers, after a process has died
model.py         what was promised at each moment of a workload
workload.py      seeded workloads over several partitions
verdict.py       what must be true of a directory that is opened after a crash
truth.py         what follows from batches: who wrote what, what is decided, what a reader may see
producing.py     seeded workloads over one log with producers and transactions, also compacted
knowledge.py     what a log must know of producers and transactions
compacted.py     what compaction has to leave
log_verdict.py   what must be true of such a log that is opened after a crash
coordinating.py  seeded workloads of transactions over several partitions, and what must be true of them
child.py         a process under load, to be killed
"""

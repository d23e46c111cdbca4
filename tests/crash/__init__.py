"""Crashes: what is left of a data directory when the power goes, or a process is killed.

disk.py      what a disk may hold after a power cut, by the rules of file systems
storage.py   a `Storage` that keeps a journal, and can stop at any operation
model.py     what was promised at each moment of a workload
workload.py  seeded workloads over several partitions
verdict.py   what must be true of a directory that is opened after a crash
child.py     a process under load, to be killed
"""

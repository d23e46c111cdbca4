"""Append batches that many tasks have staged in files to several logs: all of them or none, and once.

A task writes whole batches of magic 2 to a staged file, beside the data directory and never inside it (`StagedWriter`).
`DataDirectory.commit_staged` appends the batches of all tasks to their logs. In this order:

1. A commit that was interrupted earlier is finished.
2. If the journal has the identity of this commit, or a later version, it was committed before: nothing is appended.
3. Topics that are missing are created.
4. Everything that an append could refuse is checked, with the configuration of this moment. Batches that the topic's
   configuration changes (LogAppendTime, another `compression.type`) are rewritten into a further staged file. From here
   on, a staged batch is what the log will contain, but for base offset and leader epoch, which no checksum covers.
5. The journal gets the pending commit: where each log ends, and what will follow. This decides.
6. The batches are appended, and the logs are flushed.
7. The journal gets the identity, and has nothing pending any more. The staged files are removed.

Whoever opens the directory for writing next finds a pending commit in the journal and finishes it: it compares what is
in each log, from the offset in the journal on, with the staged batches, and appends those that are missing
(`matching.py`). This can be interrupted anywhere and repeated. Apache Kafka may have opened the directory in between,
and appended records of its own.
"""

"""The other half of `format("octavo")`: DataFrames become logs that Apache Kafka serves, each row exactly once.

Tasks encode their rows as batches, into files of a staging folder (`task_writer`). The commit appends these to the logs
of the directory, all of them or none (`writer`, and `octavo.log.staging`).
"""

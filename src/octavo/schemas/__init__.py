"""The records of Kafka's internal topics, declared from Kafka's own definitions.

    entity.py     how a record is declared, and read and written by its declaration
    metadata/     the records of `__cluster_metadata`: topics, partitions, configurations and more

Nothing is imported here: reading and writing needs kio, which takes a moment to load.
"""

"""The records of Kafka's internal topics, declared from Kafka's own definitions.

    entity.py             declare a record, and read and write it by its declaration
    primitives.py         the primitive types of fields
    versioned.py          keys and values of the coordinators, preceded by their type or version
    consumer_offsets.py   the records of `__consumer_offsets`: committed offsets
    transaction_state.py  the records of `__transaction_state`
    metadata/             the records of `__cluster_metadata`: topics, partitions, configurations and more

The package itself imports nothing: reading and writing needs kio, which takes a moment to load.
"""

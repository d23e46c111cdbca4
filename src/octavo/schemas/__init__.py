"""The records of Kafka's internal topics, declared from Kafka's own definitions.

    entity.py             declare a record, and read and write it by its declaration
    primitives.py         the primitive types of fields
    lengths.py            varints and lengths
    versioned.py          keys and values of the coordinators, preceded by their type or version
    framed.py             records of metadata, preceded by their type and version
    consumer_offsets/     the records of `__consumer_offsets`: committed offsets, groups and their members
    transaction_state.py  the records of `__transaction_state`
    share_group_state.py  the records of `__share_group_state`
    metadata/             the records of `__cluster_metadata`: topics, partitions, configurations and more
    remote_log_metadata/  the records of `__remote_log_metadata`
    consumer_protocol.py  what the consumers of a classic group tell one another

The package itself imports nothing: to load all its records takes a moment.
"""

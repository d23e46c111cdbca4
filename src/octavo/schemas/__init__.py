"""The records of Kafka's internal topics, declared from Kafka's own definitions.

    entity.py        how a record is declared, and read and written by its declaration
    primitives.py    the simple types that it is made of
    versioned.py     keys and values of coordinators, with their version in front
    offsets.py       the records of `__consumer_offsets`: committed positions
    transactions.py  the records of `__transaction_state`
    metadata/        the records of `__cluster_metadata`: topics, partitions, configurations and more

Nothing is imported here: reading and writing needs kio, which takes a moment to load.
"""

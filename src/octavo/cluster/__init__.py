"""What a broker in an Apache Kafka cluster decides. No files, no sockets, no clocks.

Each class gets what has happened, with the time in milliseconds of a clock that never goes back, and says what has to
be done: which request to send, and what to do with the logs. Whoever runs it does that and reports back.

    quorum        follow the metadata log of the controllers
    life_cycle    register, send heartbeats, shut down
    replicas      find out from new metadata which partitions to lead, to follow and to delete
    following     fetch from one leader
    leading       lead one partition: who is in sync, and how far the high watermark goes
    isr_changes   have the controller change the replicas in sync
"""

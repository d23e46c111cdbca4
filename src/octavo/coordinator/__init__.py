"""What Kafka's coordinators decide: groups, committed offsets and transactions. No files, no sockets, no clocks.

A coordinator of one partition of an internal topic is a `Shard`. A request and the time go in; records for the log, and
answers, come out. `octavo.log.coordinator` appends the records and hands the answers over; both the clients in this
process and the broker go through it.
"""

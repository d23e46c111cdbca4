"""Clusters of Apache Kafka's controllers with brokers of both kinds, under load and faults.

`nodes` runs a cluster, `network` and `proxy` cut and delay what its nodes say to each other, `load` has clients write
and read and notes what they see, `replicas` compares what is in the directories. `faults` are what happens to a node,
one at a time; a `nemesis` has several happen at once.
"""

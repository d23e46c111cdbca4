"""Measurements. `python -m benchmarks NAME --json` runs one.

measure     runs contenders in turns; gives a list of results, each a ratio
data        the data, written by Apache Kafka and kept in build/bench
jvm         Apache Kafka in its own process, as a peer
clients     kafka-python and aiokafka as peers
report      prints results as a table or as JSON
fresh       programs for measurements that need a fresh process
registry    every NAME; a new benchmark is a module with a `run` and a line there
"""

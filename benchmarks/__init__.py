"""Measurements. `python -m benchmarks NAME --json` runs one.

measure     contenders take turns; what comes out is a list of results, each a ratio
data        what is measured on, written by Apache Kafka and kept in build/bench
jvm         Apache Kafka in a process of its own, as a peer
clients     kafka-python and aiokafka as peers
report      results as a table or as JSON
fresh       programs for what only a fresh process can tell
registry    every NAME; a new one is a module with a `run` and a line there
"""

"""The benchmarks. `python -m benchmarks NAME --json` runs one.

measure     runs contenders in turns; returns a list of results, each a ratio
data        data sets, written by Apache Kafka and kept in build/bench
jvm         Apache Kafka in its own process, to compare with
clients     kafka-python and aiokafka, to compare with
report      prints results as a table or as JSON
fresh       programs for measurements that need a fresh process
registry    the list of all benchmarks; a new one is a module with a `run` function and an entry there
"""

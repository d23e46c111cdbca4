"""The records of `__cluster_metadata`: all that Kafka 4.3 defines, in `metadata/src/main/resources/common/metadata`."""

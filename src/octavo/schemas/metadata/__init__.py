"""All records of `__cluster_metadata` that Kafka 4.3 defines, in `metadata/src/main/resources/common/metadata`."""

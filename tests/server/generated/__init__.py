"""Conversations with a broker that are made from kio's schemas and a seed, and compared with those of Apache Kafka."""

"""Spark itself: its own Kafka connector is the judge, a broker of Apache Kafka writes what both read."""

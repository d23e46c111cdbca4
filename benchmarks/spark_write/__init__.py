"""Compare the sink with Spark's Kafka connector and a broker."""

"""Sequences of requests over groups and transactions, which two brokers are asked step by step."""

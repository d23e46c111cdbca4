"""Octavo's log beside Kafka's own: the same calls on both, and nothing that differs."""

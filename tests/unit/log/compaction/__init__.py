"""Compaction: small logs, exact results."""

"""Decide whether a batch may be appended, and give it its place in the log."""

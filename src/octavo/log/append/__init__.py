"""Decide whether a batch may be appended, and assign its offsets and leader epoch."""

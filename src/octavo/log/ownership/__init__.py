"""Ownership of a data directory: which process may change it."""

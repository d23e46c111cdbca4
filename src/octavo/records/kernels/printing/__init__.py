"""Kernels that print records: columns become lines of JSON."""

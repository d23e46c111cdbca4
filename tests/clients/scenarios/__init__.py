"""Scenarios: what is done with a client, and what must have become of it, for each row of the matrix."""

"""Drivers of the clients that are Python packages, in the process of the tests."""

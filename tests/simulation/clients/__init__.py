"""Simulated clients. Each is a generator of requests and of milliseconds to sleep."""

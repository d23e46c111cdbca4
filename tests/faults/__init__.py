"""Brokers that are killed, whose disk is full, or that are stopped at a bad moment, under real clients.

`broker_process` runs `octavo serve` as a process of its own. `load` has the clients, which write down in a history for
`tests.history` what they see.
"""

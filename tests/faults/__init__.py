"""Brokers that are killed, whose disk is full, or that are stopped at a bad moment, under real clients.

`broker_process` runs `octavo serve` as a process of its own. `load` has clients that produce, consume and administer,
and `transaction_load` clients that use transactions. They write down in a history for `tests.history` what they see.
"""

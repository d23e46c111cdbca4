"""Real clients, unmodified, against the broker: a matrix of client and feature, of which each cell is a test.

    driver.py       `Driver`: the calls that a client is asked to make, in one vocabulary for all of them
    group_driver.py `Groups`, `Transactions`: the part of that vocabulary for members of groups and for transactions
    program.py      `Program`: a driver in another process, which speaks JSON lines (its docstring has the protocol)
    features.py     `FEATURES`: the rows, in order. `@feature` adds one; its scenario is written once, for all clients
    scenarios/      the scenarios: they call a driver, and check what became of it in the directory or by another client
    clients.py      `CLIENTS`: the columns, and for each the cells that are not filled, with the reason
    cells.py        `CELLS`, and how to run one
    stored.py       reads what a broker stored, from its files
    proxy.py        stands between a client and a broker, and has the broker killed when it hurts
    python/         drivers of Python's clients
    brokers.py      the brokers that scenarios run against: Octavo, and in the soak Apache Kafka
    document.py     writes docs/compatibility.md (`python -m tests.clients`)
    test_matrix.py  a test for each cell
    team.py         `Team`: members of a group that are polled together; `Load`: what is produced meanwhile
    test_mixed_group.py  one group of several clients

A new row: write a function with `@feature(...)` in a module of scenarios/, which `features.load` imports. A new column:
write a driver, and add a `Client` to clients.py. Then run `python -m tests.clients`.

A cell that a client cannot fill is a test as well: the driver has to raise `CannotDo` in the scenario. So is one that
Octavo does not fill yet: the scenario has to fail, until somebody builds what is missing and removes the reason.
"""

"""Brokers that replicate partitions, on a simulated clock and network, with faults that follow from a seed.

    world.py        what happens when, and whether all is well in the end
    network.py      messages that are lost, late or held back
    faults.py       what goes wrong by chance; plots.py: what goes wrong in a certain order
    checks.py       what has to be true, whatever happens: the promises a to i
    member.py       a broker: the decisions of `octavo.cluster`, carried out in memory; replica.py: one replica of it
    real_member.py  a broker: the real one, on a simulated disk, with real_peers.py, real_replica.py and real_hooks.py;
                    real_world.py: a world of them; wire_controller.py, wire_log.py: the model, asked by bytes
    controller.py   a model of Kafka's controller, with brokers.py, elections.py and metadata_log.py
    sequences.py    requests that are put to the model and to a real controller (by_hand.py, compared.py, comparison.py,
                    stock.py)
    planted.py      mistakes that have to be found

`python -m tests.simulation.replication --seed N --trace` shows what happens from a seed, and
`--real` with real brokers.
"""

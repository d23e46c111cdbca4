"""Both coordinators under simulated clients, on a simulated clock, network and disk: everything follows from a seed.

    world.py        what happens when: the clock, the network and the faults
    machine.py      a broker of its own on a disk, which can be killed and started again
    disk.py         a disk whose writes fail, in part or wholly, or are the last thing that the process does
    wire.py         requests and answers as bytes
    clients/        those who ask: members of groups, transactional producers, administrators
    checks/         what has to be true of the answers, whatever happens
    schedule.py     one run: who takes part, what goes wrong, and whether all is well in the end
    planted.py      bugs for copies of the package, which have to be found

Requests go as bytes to `Broker.handle`, and through the real coordinators to the real log. `python -m tests.simulation
--seed N --trace` shows what happens from a seed.
"""

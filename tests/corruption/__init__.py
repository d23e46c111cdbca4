"""Damage: every byte flipped, every length cut, every lie that bytes can tell.

guard.py    memory between guard pages, also under what Octavo itself allocates
child.py    a process for each way to run the kernels, that does many cases and may die of one
worker.py   what runs inside it
samples.py  sound batches of every magic, codec and kind
forge.py    batches that lie, with the right checksum
outcome.py  what reading gave, through objects and through Arrow, and that it is the same
"""

"""The kernels of `octavo verify`: the rules of the format, read from the bytes.

Nothing that writes logs uses this code, and this code uses nothing that writes: a mistake there is not believed here.
Only the machine's own operations, the positions of header fields and the checksum functions are shared; `octavo verify`
holds the latter to a library before it believes them.

    faults.py      what can be wrong, as numbers
    numbers.py     varints
    records.py     the records of one batch of magic 2
    control.py     what is in a control record
    headers.py     the header of a batch of magic 2
    messages.py    messages of magic 0 and 1, and what is inside a compressed one
    examine.py     the kernels: many batches in one call
"""

"""Turn kernels into machine code, keep it between processes, and load it.

Only `compiled` and what it imports need Numba: `signatures`, `instructions`, `checksum_instructions`, `folding` and
`compiler`. They are imported when a kernel has to be compiled.
"""

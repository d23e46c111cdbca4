"""Turn kernels into machine code, keep it between processes, and load it."""

"""Reading a log, one that is open for writing or a watched one."""

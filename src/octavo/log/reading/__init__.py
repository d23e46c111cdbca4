"""Read a log, whether it is open for writing or only watched."""

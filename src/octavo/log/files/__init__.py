"""The small files of a data directory, one module for each kind."""

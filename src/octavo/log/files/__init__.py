"""The small files of a data directory, one module a kind."""

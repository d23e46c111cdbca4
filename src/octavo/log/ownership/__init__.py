"""Which process may change a directory."""

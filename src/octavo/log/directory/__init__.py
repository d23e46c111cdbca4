"""Data directories: their folders, topics and partitions."""

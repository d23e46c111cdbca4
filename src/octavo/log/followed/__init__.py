"""The metadata of a cluster whose controllers are other nodes: on the disk, and applied once they are committed."""

"""The records of `__consumer_offsets`: committed offsets, and groups of all protocols with their members."""

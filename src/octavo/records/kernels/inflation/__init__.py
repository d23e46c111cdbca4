"""The kernel that decompresses lz4 and snappy, for many batches in one call."""

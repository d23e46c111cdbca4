"""The kernels of compaction: one fills the map from keys to offsets, the other copies the records that stay."""

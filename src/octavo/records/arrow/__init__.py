"""Read and write whole segments as Arrow columns: `to_arrow` and `from_arrow` of `octavo.records`."""

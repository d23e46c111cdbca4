"""One segment: its file, its indexes, and how its batches are found."""

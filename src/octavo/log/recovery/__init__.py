"""Open the files of a partition after a stop, clean or not."""

"""Groups of the classic protocol, whose members assign the partitions themselves."""

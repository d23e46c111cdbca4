"""What goes into the logs that are compacted: everything that a topic can hold, drawn from a seed."""

"""The state of a log that is open for writing, and how it changes."""

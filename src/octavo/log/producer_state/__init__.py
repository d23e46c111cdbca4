"""The state of a log's producers and their transactions."""

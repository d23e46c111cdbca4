"""What a log knows of its producers and their transactions."""

"""Pages, opened in Chromium."""

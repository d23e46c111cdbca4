"""Logs and directories that another process writes."""

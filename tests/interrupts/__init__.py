"""Exceptions that come from outside, such as `KeyboardInterrupt`, in the middle of what changes a directory."""

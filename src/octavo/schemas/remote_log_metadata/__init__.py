"""The records of `__remote_log_metadata`: the segments that were copied to remote storage (KIP-405)."""

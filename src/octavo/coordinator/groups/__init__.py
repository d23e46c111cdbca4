"""The coordinator of groups: their members, and the offsets that they have committed."""

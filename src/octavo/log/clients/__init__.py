"""What producers and consumers have in common."""

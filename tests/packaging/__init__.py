"""What users install is built and used as they do, away from the checkout."""

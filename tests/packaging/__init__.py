"""What users install or read on the website is built, and used as they do."""

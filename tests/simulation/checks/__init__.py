"""What has to be true of the answers of a broker."""

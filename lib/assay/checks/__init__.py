"""What checks inherit."""

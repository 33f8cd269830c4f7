"""What masked data still reveals."""

"""What masking costs: how far the masked data is from the original."""

"""Cutting records into blocks by counting them: arrays in, small plans out, no frames."""

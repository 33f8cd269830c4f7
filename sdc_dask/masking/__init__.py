"""Masking methods: one module a method, from the values of blocks to their masked values."""

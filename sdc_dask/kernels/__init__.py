"""Algorithms as functions of arrays: numpy in, numpy out, compiled, without the GIL."""

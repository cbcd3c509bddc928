"""Compilation of kernels when they are first needed."""

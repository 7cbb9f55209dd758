"""Compiled modules (Cython over csrc/) and their type stubs."""

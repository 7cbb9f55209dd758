"""Pooling, interpolation, padding."""

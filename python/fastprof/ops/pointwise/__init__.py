"""Pointwise operators."""

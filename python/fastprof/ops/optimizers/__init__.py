"""Optimizers and foreach operators."""

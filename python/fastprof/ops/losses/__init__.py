"""Softmax, losses, distances."""

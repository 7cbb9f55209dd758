"""Operators of torchvision for detection."""

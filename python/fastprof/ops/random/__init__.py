"""Random numbers and dropout."""

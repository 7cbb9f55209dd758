"""`launches`: how far ahead of the GPU the host is."""

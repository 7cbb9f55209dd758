"""`idle`: why the GPU has no work."""

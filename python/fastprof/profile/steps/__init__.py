"""Training steps: which kernels belong to which step."""

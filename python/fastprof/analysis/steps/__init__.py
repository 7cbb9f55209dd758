"""`steps`: the length of each step, and what the GPU does in it."""

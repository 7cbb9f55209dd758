"""GPU time as a tree: of layers, call paths, source lines or call stacks."""

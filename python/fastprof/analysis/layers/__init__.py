"""`layers`: the module tree with GPU time."""

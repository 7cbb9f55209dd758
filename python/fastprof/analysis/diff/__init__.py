"""The comparison of two captures: what changed in a step, and why."""

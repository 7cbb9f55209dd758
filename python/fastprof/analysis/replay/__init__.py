"""Replay of a run: what a step would take if some of its work were faster or absent."""

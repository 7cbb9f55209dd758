"""Runs of `fastprof run`: the user's program, its traces and what is known about it."""

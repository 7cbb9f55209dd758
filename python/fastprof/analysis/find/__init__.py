"""Kernels, calls, ranges and API calls by what is known of them, in order of time."""

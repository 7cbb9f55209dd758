"""Nested ranges and the call path of every kernel; forward calls of backward kernels."""

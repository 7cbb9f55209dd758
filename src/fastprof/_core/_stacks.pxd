"""Stacks of calls, for the hooks."""

from fastprof._core._ranges cimport Marker


cdef Marker call_site()

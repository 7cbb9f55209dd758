"""What the hooks share with the stacks that they describe."""

from fastprof._core._ranges cimport Marker


cdef Marker call_site()

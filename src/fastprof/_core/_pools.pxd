# The pools of the C core as Python objects, for the modules that fill and read them.
from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_keys cimport fp_keys
from fastprof._core.fp_names cimport fp_names


cdef class Names:
    cdef fp_names *pool


cdef class Keys:
    cdef fp_keys *pool

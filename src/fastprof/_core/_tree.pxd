# The C core's tree of labels as a Python object, for the modules that fill it.
from libc.stdint cimport int32_t

from fastprof._core.fp_tree cimport fp_tree


cdef class Tree:
    cdef fp_tree *nodes

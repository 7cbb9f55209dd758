"""Chains of labels to nodes, each distinct chain once."""
import numpy as np

from libc.stdint cimport int32_t


cdef class Tree:
    """A tree that grows; empty at first."""

    def __cinit__(self):
        self.nodes = fp_tree_new()
        if self.nodes is NULL:
            raise MemoryError("no memory for a tree")

    def __dealloc__(self):
        fp_tree_free(self.nodes)

    def read(self):
        """The node above each node, -1 at the roots, and its label. Both int32 [n]."""
        cdef int32_t n = fp_tree_count(self.nodes)
        above, labels = np.empty(n, np.int32), np.empty(n, np.int32)
        cdef int32_t[::1] parent = above
        cdef int32_t[::1] label = labels
        if n:
            with nogil:
                fp_tree_read(self.nodes, &parent[0], &label[0])
        return above, labels

"""Trees of labels: one node per distinct chain of labels."""
import numpy as np

from libc.stdint cimport int32_t

from fastprof._core.fp_tree cimport fp_tree_count, fp_tree_free, fp_tree_new, fp_tree_read


cdef class Tree:
    """A tree of labels, initially empty; other modules add nodes."""

    def __cinit__(self):
        self.nodes = fp_tree_new()
        if self.nodes is NULL:
            raise MemoryError("out of memory for a tree of labels")

    def __dealloc__(self):
        fp_tree_free(self.nodes)

    def read(self):
        """The parent (-1 at roots) and the label of each node; both int32 [n]."""
        cdef int32_t n = fp_tree_count(self.nodes)
        above, labels = np.empty(n, np.int32), np.empty(n, np.int32)
        cdef int32_t[::1] parent = above
        cdef int32_t[::1] label = labels
        if n:
            with nogil:
                fp_tree_read(self.nodes, &parent[0], &label[0])
        return above, labels

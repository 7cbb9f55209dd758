from libc.stdint cimport int32_t


cdef extern from "path/fp_tree.h":
    ctypedef struct fp_tree:
        pass

    fp_tree *fp_tree_new() nogil
    void fp_tree_free(fp_tree *tree) nogil
    int32_t fp_tree_count(const fp_tree *tree) nogil
    void fp_tree_read(const fp_tree *tree, int32_t *above, int32_t *label) nogil

from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_status cimport fp_status
from fastprof._core.fp_tree cimport fp_tree


cdef extern from "path/fp_itree.h":
    ctypedef struct fp_itree:
        const int64_t *start
        const int64_t *end
        const int64_t *max_end
        int32_t n

    void fp_itree_build(const int64_t *end, int32_t n, int64_t *max_end) nogil
    int32_t fp_itree_open_at(fp_itree tree, int64_t t, int32_t *found) nogil
    fp_status fp_itree_nodes(fp_itree tree, const int32_t *label, const int64_t *t, int32_t n,
                             fp_tree *nodes, int32_t *found, int32_t *node) nogil

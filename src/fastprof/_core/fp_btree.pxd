from libc.stdint cimport int64_t, uint32_t

from fastprof._core.fp_pages cimport fp_pages
from fastprof._core.fp_status cimport fp_status


cdef extern from "scan/fp_btree.h":
    ctypedef struct fp_leaf:
        int64_t last
        uint32_t page

    ctypedef struct fp_btree:
        fp_leaf *leaves
        int64_t n

    fp_status fp_btree_init(const fp_pages *pages, uint32_t root, fp_btree *tree,
                            const char **why) nogil
    void fp_btree_free(fp_btree *tree) nogil

from libc.stdint cimport int64_t, uint8_t, uint32_t

from fastprof._core.fp_status cimport fp_status


cdef extern from "scan/fp_pages.h":
    int FP_PAGES_HEADER

    ctypedef struct fp_pages:
        uint32_t page_size
        uint32_t n_pages

    fp_status fp_pages_init(const uint8_t *header, int64_t file_size, int file, fp_pages *pages,
                            const char **why) nogil

    ctypedef struct fp_leaf:
        int64_t last
        uint32_t page

    ctypedef struct fp_btree:
        fp_leaf *leaves
        int64_t n

    fp_status fp_btree_init(const fp_pages *pages, uint32_t root, fp_btree *tree,
                            const char **why) nogil
    void fp_btree_free(fp_btree *tree) nogil

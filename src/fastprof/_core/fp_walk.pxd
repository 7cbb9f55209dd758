from libc.stdint cimport int64_t

from fastprof._core.fp_column cimport fp_columns, fp_row_filter
from fastprof._core.fp_pages cimport fp_btree, fp_pages
from fastprof._core.fp_status cimport fp_status


cdef extern from "scan/fp_walk.h":
    ctypedef enum fp_added:
        FP_ADDED_NULL, FP_ADDED_NUMBER, FP_ADDED_OTHER

    int FP_PLACE_OF_ROW_ID

    ctypedef struct fp_place:
        int place
        fp_added added
        int64_t added_number

    ctypedef struct fp_walk:
        pass

    fp_walk *fp_walk_new(const fp_pages *pages, const fp_btree *tree, const fp_place *places,
                         int n_places, int64_t first, int64_t last) nogil
    void fp_walk_free(fp_walk *walk) nogil
    fp_status fp_walk_step(fp_walk *walk, const fp_columns *columns, fp_row_filter filter,
                           int64_t limit, int64_t capacity, int64_t *kept,
                           int64_t *stepped) nogil
    const char *fp_walk_why(const fp_walk *walk) nogil

from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_status cimport fp_status
from fastprof._core.fp_tree cimport fp_tree


cdef extern from "path/fp_nest.h":
    bint fp_order_holds(const int64_t *start, const int64_t *end, int32_t n) nogil
    void fp_order_sort(const int64_t *start, const int64_t *end, int32_t n, int32_t *order,
                       int32_t *scratch) nogil

    ctypedef struct fp_intervals:
        const int64_t *start
        const int64_t *end
        const int32_t *thread
        int32_t n

    ctypedef struct fp_points:
        const int64_t *start
        const int32_t *thread
        int32_t n

    ctypedef struct fp_frames:
        int32_t *parent
        int32_t *range
        int32_t *first
        int32_t n
        int32_t capacity

    ctypedef struct fp_nest_place:
        int32_t range
        int32_t point

    fp_status fp_nest(fp_intervals ranges, fp_points points, int32_t n_threads, int32_t *top,
                      fp_frames *frames, fp_nest_place *place, int32_t *frame_of_range,
                      int32_t *frame_of_point) nogil

    ctypedef struct fp_itree:
        const int64_t *start
        const int64_t *end
        const int64_t *max_end
        int32_t n

    void fp_itree_build(const int64_t *end, int32_t n, int64_t *max_end) nogil
    int32_t fp_itree_open_at(fp_itree tree, int64_t t, int32_t *found) nogil
    fp_status fp_itree_nodes(fp_itree tree, const int32_t *label, const int64_t *t, int32_t n,
                             fp_tree *nodes, int32_t *found, int32_t *node) nogil

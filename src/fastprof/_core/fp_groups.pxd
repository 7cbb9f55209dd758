from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core.fp_status cimport fp_status


cdef extern from "analysis/fp_groups.h":
    fp_status fp_cells_refine(const int32_t *cell, const int32_t *id, int64_t n, int32_t n_cells,
                              int32_t n_ids, int32_t *table, int32_t *refined, int32_t *first,
                              int32_t *n_refined) nogil

    ctypedef struct fp_cells_kernels:
        const int32_t *cell
        const int64_t *duration
        const int64_t *flops
        const int64_t *bytes
        int64_t n
        int32_t n_cells
        const uint8_t *is_small
        const double *per_flop
        const double *per_byte

    fp_status fp_cells_short(const fp_cells_kernels *kernels, int64_t longest, double least,
                             int64_t *time) nogil

    ctypedef struct fp_counted_kernels:
        const int32_t *group
        const int32_t *step
        const int32_t *call
        const int64_t *duration
        int64_t n
        int32_t n_groups
        int32_t n_steps
        int32_t n_calls

    ctypedef struct fp_counted_pieces:
        const int32_t *row
        const int32_t *window
        const int64_t *ns

    ctypedef struct fp_counted_merged:
        int32_t *group
        int32_t *window
        int64_t *ns

    ctypedef struct fp_counted_sums:
        int64_t *kernels
        int64_t *ns
        int64_t *calls
        int32_t *first

    fp_status fp_counted_merge(const fp_counted_kernels *kernels, const fp_counted_pieces *pieces,
                               int64_t n, const fp_counted_merged *merged, int64_t *n_merged,
                               int64_t *last, uint8_t *runs) nogil
    fp_status fp_counted_sum(const fp_counted_kernels *kernels, const uint8_t *is_counted,
                             const uint8_t *runs, uint8_t *seen,
                             const fp_counted_sums *sums) nogil

    ctypedef struct fp_groups_rows:
        const int32_t *group
        const int64_t *value
        int64_t n
        int64_t none
        int32_t n_groups

    ctypedef struct fp_groups_stats:
        int64_t *count
        int64_t *sum
        int64_t *min
        int64_t *max
        double *squares

    fp_status fp_groups_reduce(const fp_groups_rows *rows, const fp_groups_stats *stats) nogil
    fp_status fp_groups_sum_where(const fp_groups_rows *rows, const uint8_t *mask,
                                  int64_t *sum) nogil
    fp_status fp_groups_distinct(const fp_groups_rows *rows, const int32_t *id, int32_t n_ids,
                                 int32_t *home, int64_t *count) nogil
    fp_status fp_groups_median(const fp_groups_rows *rows, const int64_t *count, int64_t *scratch,
                               int64_t *ends, double *median) nogil

    ctypedef struct fp_launched_kernels:
        const int32_t *group
        const int32_t *call
        const int64_t *start
        int64_t n

    ctypedef struct fp_launched_calls:
        const int64_t *start
        const int64_t *end
        int64_t n

    ctypedef struct fp_launched_sums:
        int64_t *launches
        int64_t *host
        int64_t *on_time
        int64_t *starved

    enum:
        FP_LAUNCHED_NO_GROUP
        FP_LAUNCHED_OTHER

    fp_status fp_launched(const fp_launched_kernels *kernels, const fp_launched_calls *calls,
                          int32_t n_groups, int64_t starved_ns, uint8_t *seen,
                          const fp_launched_sums *sums) nogil

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core.fp_status cimport fp_status


cdef extern from "analysis/fp_sweep.h":
    ctypedef struct fp_busy_work:
        const int64_t *start
        const int64_t *duration
        const int32_t *id
        const int32_t *group
        const uint8_t *mask
        int64_t n
        int32_t n_ids
        int32_t n_groups

    ctypedef struct fp_busy_lines:
        int64_t *begin
        int64_t *end
        int64_t *busy

    fp_status fp_busy(const fp_busy_work *work, const fp_busy_lines *lines) nogil
    fp_status fp_busy_overlaps(const fp_busy_work *work, int64_t *end, int64_t *count,
                               int64_t *longest) nogil

    enum:
        FP_SWEEP_MASKS

    ctypedef struct fp_sweep_work:
        const int64_t *start
        const int64_t *end
        const uint8_t *kind
        int64_t n

    ctypedef struct fp_sweep_gap:
        int64_t start
        int64_t end
        int32_t before
        int32_t after

    fp_status fp_sweep_until(const fp_sweep_work *work, const int64_t *time, int64_t n_times,
                             int64_t *by_mask) nogil
    fp_status fp_sweep_gaps(const fp_sweep_work *work, fp_sweep_gap *gaps,
                            int64_t *n_gaps) nogil
    fp_status fp_sweep_own(const fp_sweep_work *work, int64_t *own) nogil

    ctypedef struct fp_sweep_idle_part:
        int64_t start
        int64_t end
        int32_t before
        int32_t after
        int32_t window

    fp_status fp_sweep_idle(const fp_sweep_work *work, int64_t first, const int64_t *window_start,
                            const int64_t *window_end, int64_t n_windows, int64_t short_ns,
                            int64_t *short_sum, fp_sweep_idle_part *parts, int64_t room,
                            int64_t *n_parts) nogil

    ctypedef struct fp_sweep_parts:
        int32_t *interval
        int32_t *window
        int64_t *ns

    fp_status fp_sweep_own_parts(const fp_sweep_work *work, const int64_t *window_start,
                                 const int64_t *window_end, int64_t n_windows,
                                 const fp_sweep_parts *parts, int64_t room,
                                 int64_t *n_parts) nogil

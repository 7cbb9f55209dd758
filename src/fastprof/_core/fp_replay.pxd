from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_status cimport fp_status


cdef extern from "replay/fp_replay.h":
    enum:
        FP_REPLAY_SLOTS

    ctypedef struct fp_replay_graph:
        int64_t n
        const int32_t *source[3]
        const int32_t *lag[3]
        const int64_t *before
        const int64_t *duration
        const int64_t *full

    ctypedef struct fp_replay_query:
        const int32_t *group
        const double *factor
        int32_t n_groups
        const int32_t *part
        const int64_t *begin
        int32_t n_parts
        const int32_t *step
        int32_t n_steps

    ctypedef struct fp_replay_part:
        int64_t own
        int64_t before
        int64_t lag
        int32_t node
        int32_t slot

    fp_status fp_replay_run(const fp_replay_graph *graph, const fp_replay_query *query,
                            int64_t *time, int64_t *end) nogil
    fp_status fp_replay_path(const fp_replay_graph *graph, const int64_t *time, int32_t node,
                             int64_t start, fp_replay_part *part, int64_t room,
                             int64_t *n) nogil
    fp_status fp_replay_slack(const fp_replay_graph *graph, const int64_t *time,
                              int64_t *slack) nogil

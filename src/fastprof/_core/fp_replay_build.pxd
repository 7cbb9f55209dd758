from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core.fp_status cimport fp_status


cdef extern from "replay/fp_replay_build.h":
    ctypedef struct fp_replay_trace:
        const int64_t *call_start
        const int64_t *call_end
        const int32_t *call_thread
        const int32_t *call_lane
        const uint8_t *call_kind
        const int32_t *process_of_thread
        const int64_t *start
        const int64_t *duration
        const int32_t *lane
        const int32_t *call
        const int32_t *name
        const int32_t *process_of_lane
        const int32_t *gpu_of_lane
        int32_t n_calls
        int32_t n_threads
        int32_t n_work
        int32_t n_lanes
        int32_t n_processes
        int32_t n_names
        int64_t begin

    ctypedef struct fp_replay_nodes:
        int32_t *source[3]
        int32_t *lag[3]
        int64_t *before
        int64_t *duration
        uint8_t *kind
        uint8_t *slot
        int32_t *row
        int32_t *call_node
        int32_t *work_node

    ctypedef struct fp_replay_built:
        int64_t origin
        int64_t unexplained
        int32_t n_nodes
        int32_t n_cut
        int32_t n_unplaced

    fp_status fp_replay_build(const fp_replay_trace *trace, const fp_replay_nodes *nodes,
                              fp_replay_built *built) nogil

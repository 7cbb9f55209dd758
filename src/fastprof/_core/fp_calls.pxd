from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t

from fastprof._core.fp_names cimport fp_names
from fastprof._core.fp_status cimport fp_status


cdef extern from "cost/fp_calls.h":
    int FP_CALL_KNOWN, FP_CALL_UNKNOWN_BACKWARD, FP_CALL_FAMILY, FP_CALL_GRADIENT, FP_CALL_MOVES
    int FP_CALL_BIAS, FP_CALL_BIAS_BACKWARD, FP_CALL_MATRICES, FP_CALL_FORMULA
    int FP_SOME_TAKEN, FP_ALL_TAKEN
    size_t FP_CALLS_SCRATCH(int32_t n_frames) nogil
    int FP_FRAME_ENGINE, FP_FRAME_NODE, FP_FRAME_FITS
    fp_status fp_calls_outside(const int32_t *parent, const int32_t *label, int32_t n,
                               const uint8_t *bits, int32_t n_labels, uint8_t *outside) nogil
    fp_status fp_calls_instances(const int32_t *backward, const int32_t *meaning,
                                 const int32_t *picked, int32_t n, int32_t *scratch,
                                 int32_t *instance) nogil

    ctypedef struct fp_calls_frames:
        int32_t n_frames
        int32_t n_labels
        const int32_t *parent
        const int32_t *label
        const int32_t *range
        const int32_t *picked
        const int32_t *inner
        const int32_t *backward
        const int32_t *instance
        const uint8_t *outside
        const uint16_t *says
        const int32_t *name
        const int32_t *overload
        const int32_t *sizes
        const int32_t *dtypes
        const int32_t *flops

    ctypedef struct fp_kind:
        int32_t label
        int32_t work
        int32_t helper
        uint16_t is_backward
        uint16_t is_gradient

    ctypedef struct fp_calls_of:
        int32_t *kind
        int32_t *group
        int32_t *instance
        fp_names *kinds

    fp_status fp_calls_find(
        const fp_calls_frames *frames, const int32_t *frame, const int32_t *meaning, int64_t n,
        const fp_calls_of *of, uint8_t *taken, int32_t *scratch, int32_t *n_groups) nogil

from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_keys cimport fp_keys
from fastprof._core.fp_names cimport fp_names
from fastprof._core.fp_status cimport fp_status


cdef extern from "scan/fp_column.h":
    ctypedef enum fp_column_kind:
        FP_COLUMN_I64, FP_COLUMN_I32, FP_COLUMN_KEY, FP_COLUMN_TEXT, FP_COLUMN_LENGTH
        FP_COLUMN_RANGE, FP_COLUMN_MESSAGE

    bint fp_column_is_range(fp_column_kind kind) nogil

    int FP_MAX_COLUMNS

    ctypedef struct fp_column:
        fp_column_kind kind
        int64_t none
        int shift
        bint may_be_null
        fp_keys *keys
        fp_names *names
        bint is_part
        void *out
        int64_t *seq
        int64_t *op_id

    ctypedef struct fp_together:
        fp_names *pool
        const char *values
        size_t length
        int32_t *out

    ctypedef struct fp_columns:
        const fp_column *each
        int n
        fp_together together

    ctypedef bint (*fp_row_keep)(const void *state, const int64_t *values) noexcept nogil

    ctypedef struct fp_row_filter:
        fp_row_keep keep
        const void *state
        int n_columns

    ctypedef struct fp_scratch:
        char *bytes
        size_t capacity

    fp_status fp_column_range_name(fp_names *names, fp_scratch *scratch, const char *text,
                                   size_t length, int32_t *label, int64_t *seq,
                                   int64_t *op_id) nogil

from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_hash cimport fp_hash
from fastprof._core.fp_status cimport fp_status


cdef extern from "base/fp_alike.h":
    ctypedef struct fp_alike_column:
        const char *values
        size_t size

    int FP_ALIKE_SLOTS
    fp_status fp_alike(fp_hash *table, const fp_alike_column *columns, int n_columns, int64_t n,
                       int64_t *next, int32_t *id, int32_t *first, int32_t *n_distinct) nogil

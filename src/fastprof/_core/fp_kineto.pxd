from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_names cimport fp_names
from fastprof._core.fp_status cimport fp_status


cdef extern from "kineto/fp_kineto.h":
    enum:
        FP_KINETO_TABLES
        FP_KINETO_WHOLE
        FP_KINETO_NO_TRACE
        FP_KINETO_INT64
        FP_KINETO_TRIPLE

    ctypedef int fp_kineto_type

    ctypedef struct fp_kineto_rows:
        int64_t rows
        int64_t capacity
        void *columns[19]

    ctypedef struct fp_kineto:
        pass

    const char *fp_kineto_column(int table, int column, fp_kineto_type *type) nogil
    fp_kineto *fp_kineto_new() nogil
    void fp_kineto_free(fp_kineto *kineto) nogil
    fp_status fp_kineto_read(
        fp_kineto *kineto, const char *bytes, size_t length, fp_kineto_rows *tables,
        size_t *used) nogil
    int fp_kineto_state(const fp_kineto *kineto, int *has_events) nogil
    int64_t fp_kineto_lost(const fp_kineto *kineto, int64_t *bytes) nogil
    int64_t fp_kineto_count(
        const fp_kineto *kineto, int32_t i, int32_t *phase, int32_t *category) nogil
    const fp_names *fp_kineto_texts_of(const fp_kineto *kineto, int pool) nogil

from libc.stdint cimport int64_t

from fastprof._core.fp_names cimport fp_names
from fastprof._core.fp_status cimport fp_status


cdef extern from "text/fp_records.h":
    enum:
        FP_RECORDS_COLUMNS
        FP_RECORDS_NUMBER
        FP_RECORDS_TEXT

    ctypedef struct fp_records_rows:
        int64_t rows
        int64_t capacity
        int64_t *columns[24]

    ctypedef struct fp_records:
        pass

    fp_records *fp_records_new() nogil
    void fp_records_free(fp_records *records) nogil
    fp_status fp_records_add(
        fp_records *records, const char *path, const char *field, int table, int column,
        int kind) nogil
    fp_status fp_records_root(fp_records *records, const char *path) nogil
    fp_status fp_records_read(
        fp_records *records, const char *bytes, size_t length, fp_records_rows *tables,
        int n_tables, size_t *used) nogil
    bint fp_records_is_whole(const fp_records *records) nogil
    const fp_names *fp_records_texts(const fp_records *records) nogil

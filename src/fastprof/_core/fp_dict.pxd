from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_names cimport fp_names
from fastprof._core.fp_status cimport fp_status


cdef extern from "text/fp_dict.h":
    enum:
        FP_DICT_INTS
        FP_DICT_TRIPLES
        FP_DICT_LISTS
        FP_DICT_TEXTS

    ctypedef enum fp_dict_kind:
        FP_DICT_INT
        FP_DICT_TRIPLE
        FP_DICT_LIST
        FP_DICT_TEXT

    const char *fp_dict_key(fp_dict_kind kind, int i) nogil

    ctypedef struct fp_dict_columns:
        int64_t rows
        int64_t capacity
        int64_t *ints[5]
        int32_t *triples[2]
        int32_t *texts[10]
        int64_t *list_offsets[2]
        int64_t *list_values[2]
        int64_t list_capacity[2]

    ctypedef struct fp_dict:
        pass

    fp_dict *fp_dict_new() nogil
    void fp_dict_free(fp_dict *dict) nogil
    fp_status fp_dict_read(
        fp_dict *dict, const char *bytes, size_t length, bint is_end, fp_dict_columns *columns,
        size_t *used) nogil
    int64_t fp_dict_line(const fp_dict *dict) nogil
    int64_t fp_dict_stop(const fp_dict *dict) nogil
    const fp_names *fp_dict_pool(const fp_dict *dict, int i) nogil
    const int64_t *fp_dict_lines(const fp_dict *dict, int i) nogil

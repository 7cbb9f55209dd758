from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_status cimport fp_status


cdef extern from "text/fp_names.h":
    ctypedef struct fp_names:
        pass

    int32_t fp_names_count(const fp_names *names) nogil
    const char *fp_names_bytes(const fp_names *names, const int64_t **offsets) nogil

    ctypedef struct fp_torch_name:
        size_t name_length
        const char *sizes
        size_t sizes_length
        int64_t seq
        int64_t op_id

    fp_names *fp_names_new() nogil
    void fp_names_free(fp_names *names) nogil
    fp_status fp_names_intern(fp_names *names, const char *text, size_t length, int32_t *id) nogil

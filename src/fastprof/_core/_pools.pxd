# The pools of the C core as Python objects, for the modules that fill and read them.
from libc.stdint cimport int32_t, int64_t

from fastprof._core._c cimport fp_status


cdef extern from "text/fp_names.h":
    ctypedef struct fp_names:
        pass
    ctypedef struct fp_torch_name:
        size_t name_length
        const char *sizes
        size_t sizes_length
        int64_t seq
        int64_t op_id
    fp_names *fp_names_new() nogil
    void fp_names_free(fp_names *names) nogil
    fp_status fp_names_intern(fp_names *names, const char *text, size_t length, int32_t *id) nogil
    int32_t fp_names_count(const fp_names *names) nogil
    const char *fp_names_bytes(const fp_names *names, const int64_t **offsets) nogil


cdef extern from "base/fp_keys.h":
    ctypedef struct fp_keys:
        pass
    fp_keys *fp_keys_new() nogil
    void fp_keys_free(fp_keys *keys) nogil
    fp_status fp_keys_intern(fp_keys *keys, int64_t key, int32_t *id) nogil
    fp_status fp_keys_intern_pairs(fp_keys *keys, const int32_t *left, const int32_t *right,
                                   int64_t n, int32_t *id) nogil
    int32_t fp_keys_find(const fp_keys *keys, int64_t key) nogil
    int32_t fp_keys_count(const fp_keys *keys) nogil
    const int64_t *fp_keys_values(const fp_keys *keys) nogil


cdef class Names:
    cdef fp_names *pool


cdef class Keys:
    cdef fp_keys *pool

from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_status cimport fp_status


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

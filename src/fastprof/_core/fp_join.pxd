from libc.stdint cimport int32_t, int64_t

from fastprof._core.fp_status cimport fp_status


cdef extern from "path/fp_join.h":
    ctypedef struct fp_next_kernels:
        const int32_t *launch
        const int32_t *thread
        const int64_t *start
        int64_t n
        int32_t n_launches
        int32_t n_threads

    fp_status fp_next(const fp_next_kernels *kernels, const int64_t *rows, int64_t n_rows,
                      int64_t *last, int64_t *waiting, int64_t *next) nogil

    ctypedef struct fp_join:
        pass

    fp_join *fp_join_new(const int32_t *process, const int64_t *id, int64_t n) nogil
    void fp_join_free(fp_join *join) nogil
    bint fp_join_has(const fp_join *join, int32_t process, int64_t id) nogil
    void fp_join_offer(fp_join *join, const int32_t *process, const int64_t *id, int64_t n) nogil
    void fp_join_rows(const fp_join *join, const int32_t *process, const int64_t *id, int64_t n,
                      int32_t *row) nogil

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

from fastprof._core.fp_status cimport fp_status


cdef extern from "cost/fp_parts.h":
    enum: FP_PARTS
    enum: FP_WHOLE
    enum: FP_BESIDE
    enum: FP_ALL_PARTS
    enum: FP_VARIANTS

    ctypedef struct fp_parts_tables:
        int32_t n_rows
        int32_t n_forms
        int32_t n_infos
        const int32_t *form
        const int8_t *part_of
        const uint8_t *sure
        const uint8_t *variant
        const uint8_t *main
        const uint8_t *costed
        const uint8_t *whole_always
        const uint8_t *other

    ctypedef struct fp_claim:
        pass

    ctypedef struct fp_parts_kernels:
        const int32_t *kind
        const int32_t *row
        const int32_t *name
        const int32_t *info
        const int32_t *group
        const uint8_t *taken
        int32_t n_kinds
        int32_t n_names
        int32_t n_groups
        int64_t n

    fp_status fp_parts_find(const fp_parts_tables *tables, const fp_parts_kernels *kernels,
                            int32_t *cell, fp_claim *claims, uint8_t *state) nogil

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core.fp_status cimport fp_status
from fastprof._core.fp_tree cimport fp_tree


cdef extern from "path/fp_path.h":
    fp_status fp_path(const int32_t *parent, const int32_t *label, int32_t n,
                      const uint8_t *wanted, int32_t n_labels, fp_tree *nodes,
                      int32_t *node) nogil
    fp_status fp_path_innermost(const int32_t *parent, const int32_t *own, int32_t n,
                                int32_t *out) nogil
    fp_status fp_path_nearest(const int32_t *parent, const int32_t *label, int32_t n,
                              const uint8_t *wanted, int32_t n_labels, int32_t *out) nogil
    int FP_NO_RANK
    fp_status fp_path_best(const int32_t *parent, const int32_t *label, int32_t n,
                           const uint8_t *rank, int32_t n_labels, int32_t *out) nogil
    void fp_path_number(const int32_t *label, int32_t n, const uint8_t *rank, uint8_t only,
                        int32_t *best, int32_t *entry, int32_t *n_entries) nogil
    int FP_SAYS_BACKWARD, FP_SAYS_FORWARD, FP_SAYS_TORCH
    int FP_NOWHERE, FP_FORWARD, FP_BACKWARD
    fp_status fp_path_directions(const int32_t *parent, const int32_t *label, int32_t n,
                                 const uint8_t *says, int32_t n_labels, uint8_t *direction) nogil
    fp_status fp_path_sums(const int32_t *parent, int32_t n, int64_t *value) nogil
    int32_t fp_path_depth(const int32_t *parent, int32_t n, int32_t *depth) nogil
    int32_t fp_path_misplaced(const int32_t *parent, const int32_t *node, int32_t n,
                              const int32_t *above, int32_t n_nodes) nogil

from libc.stdint cimport uint64_t


cdef extern from "base/fp_hash.h":
    ctypedef struct fp_hash_slot:
        pass

    ctypedef struct fp_hash:
        fp_hash_slot *slots
        size_t n_slots
        uint64_t secret

    uint64_t fp_hash_secret(const void *address) nogil
    void fp_hash_move(const fp_hash *source, const fp_hash *to) nogil

from libc.stdint cimport int64_t


cdef extern from "text/fp_text.h":
    ctypedef struct fp_text:
        const char *bytes
        int64_t length

    ctypedef struct fp_texts:
        const char *bytes
        const int64_t *offsets
        int64_t count

    int FP_TEXT_BEYOND

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core.fp_text cimport fp_texts


cdef extern from "write/fp_seqmarkers.h":
    ctypedef struct fp_seqmarkers:
        pass

    ctypedef struct fp_seqmarkers_tables:
        const int32_t *frame_of_row
        const int32_t *frame_parent
        const int32_t *range_of_frame
        const int32_t *label_of_range
        const int64_t *seq_of_range
        const int64_t *op_id_of_range
        const uint8_t *is_torch
        int64_t n_rows
        int64_t n_frames
        int64_t n_ranges
        fp_texts heads
        fp_texts tails
        char quote

    fp_seqmarkers *fp_seqmarkers_new(const fp_seqmarkers_tables *tables) nogil
    fp_seqmarkers *fp_seqmarkers_again(const fp_seqmarkers *markers) nogil
    void fp_seqmarkers_free(fp_seqmarkers *markers) nogil

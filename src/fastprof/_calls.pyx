"""Frames of kernels to the call each works for, and to the part of it that it does."""
import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

from fastprof._c cimport fp_status
from fastprof._status cimport check


cdef extern from "fp_calls.h":
    enum: FP_PARTS
    enum: FP_WHOLE
    enum: FP_BESIDE

    ctypedef struct fp_calls_frames:
        int32_t n_frames
        int32_t n_labels
        const int32_t *label
        const int32_t *picked
        const int32_t *backward
        const int32_t *instance
        const uint8_t *known
        const uint8_t *unknown_backward

    fp_status fp_calls_find(
        const fp_calls_frames *frames, const int32_t *frame, const int32_t *meaning, int64_t n,
        int32_t *label, uint8_t *is_backward, int32_t *group, int32_t *number,
        int32_t *n_groups) nogil

    ctypedef struct fp_parts_tables:
        int32_t n_rows
        int32_t n_infos
        const int8_t *part_of
        const uint8_t *sure
        const uint8_t *main
        const uint8_t *costed
        const uint8_t *whole_always
        const uint8_t *other

    fp_status fp_parts_find(
        const fp_parts_tables *tables, const int32_t *row, const int32_t *info,
        const int32_t *group, int64_t n, int32_t n_groups, int8_t *part, uint8_t *state) nogil


MOST_PARTS, WHOLE, BESIDE = FP_PARTS, FP_WHOLE, FP_BESIDE


cdef const int32_t *_numbers(const int32_t[::1] array, Py_ssize_t n) except? NULL:
    if array.shape[0] != n:
        raise ValueError(f"{array.shape[0]} values, expected {n}")
    return &array[0] if n else NULL


cdef const uint8_t *_flags(const uint8_t[::1] array, Py_ssize_t n) except? NULL:
    if array.shape[0] != n:
        raise ValueError(f"{array.shape[0]} flags, expected {n}")
    return &array[0] if n else NULL


def find(frame, meaning, label, picked, backward, instance, known, unknown_backward):
    """The call that each kernel works for.

    Parameters
    ----------
    frame, meaning : int32 [kernels]
        The kernel's frame, and the one that says what it is for; -1 for none.
    label : int32 [frames]
    picked : int32 [frames]
        The frame of the call that the frame is a part of, -1 for none.
    backward : int32 [frames]
        The backward call around it, -1 for none.
    instance : int32 [frames]
        Of a backward call: the frame that stands for it and for all others that belong to the same
        forward call.
    known : uint8 [labels]
        1 for calls whose cost is known.
    unknown_backward : uint8 [labels]
        1 for calls whose backward pass has no known cost.

    Returns
    -------
    label : int32 [kernels], that of the call, -1 for none
    is_backward : bool [kernels], whether the call is the forward one of a backward kernel
    group : int32 [kernels], which instance of the call, numbered as they appear, -1 for none
    n_groups : int
    """
    cdef int64_t n = len(frame)
    cdef int32_t n_groups = 0
    cdef fp_calls_frames frames
    frames.n_frames, frames.n_labels = len(label), len(known)
    frames.label = _numbers(label, frames.n_frames)
    frames.picked = _numbers(picked, frames.n_frames)
    frames.backward = _numbers(backward, frames.n_frames)
    frames.instance = _numbers(instance, frames.n_frames)
    frames.known = _flags(known, frames.n_labels)
    frames.unknown_backward = _flags(unknown_backward, frames.n_labels)
    cdef const int32_t *own = _numbers(frame, n)
    cdef const int32_t *of_meaning = _numbers(meaning, n)
    labels, groups = np.empty(n, np.int32), np.empty(n, np.int32)
    is_backward = np.empty(n, np.bool_)
    if n == 0:
        return labels, is_backward, groups, 0
    cdef int32_t[::1] label_out = labels
    cdef int32_t[::1] group_out = groups
    cdef uint8_t[::1] backward_out = is_backward.view(np.uint8)
    cdef int32_t[::1] number = np.empty(frames.n_frames + 1, np.int32)
    cdef fp_status status
    with nogil:
        status = fp_calls_find(&frames, own, of_meaning, n, &label_out[0], &backward_out[0],
                               &group_out[0], &number[0], &n_groups)
    check(status, "finding calls")
    return labels, is_backward, groups, n_groups


def parts(row, info, group, int32_t n_groups, const int8_t[:, ::1] part_of, sure, main, costed,
          whole_always, other):
    """The part that each kernel does of its call.

    Two kernels of one backward call may claim the same gradient, and none the other: where their
    names do not tell for sure, one of them does the other. A guess: the gradient of the left
    operand comes first. Both cost the same, so that the sum is right whichever was which.

    Parameters
    ----------
    row, info : int32 [kernels]
        Its call and direction, and what its name says; indices of the tables below.
    group : int32 [kernels]
        The instance of the call, below n_groups, -1 for none.
    part_of : int8 [rows, infos]
        The part that such a kernel does of such a call, 0 .. MOST_PARTS - 1, -1 for none.
    sure : bool [rows, infos]
        Whether its name says so.
    main : bool [rows, MOST_PARTS]
        Whether the part is one of the call's products.
    costed, whole_always : bool [rows]
        Whether the call's cost is known; whether kernels that are not recognised do all of it.
    other : bool [infos]
        A kernel of which nothing is known.

    Returns
    -------
    int8 [kernels] : 0 .. MOST_PARTS - 1, WHOLE or BESIDE
    """
    cdef int64_t n = len(row)
    cdef Py_ssize_t n_cells = part_of.shape[0] * part_of.shape[1]
    cdef fp_parts_tables tables
    out = np.empty(n, np.int8)
    if n == 0:
        return out
    tables.n_rows, tables.n_infos = <int32_t>part_of.shape[0], <int32_t>part_of.shape[1]
    tables.part_of = &part_of[0, 0] if n_cells else NULL
    tables.sure = _flags(_flat(sure), n_cells)
    tables.main = _flags(_flat(main), part_of.shape[0] * FP_PARTS)
    tables.costed = _flags(_flat(costed), part_of.shape[0])
    tables.whole_always = _flags(_flat(whole_always), part_of.shape[0])
    tables.other = _flags(_flat(other), part_of.shape[1])
    cdef const int32_t *rows = _numbers(row, n)
    cdef const int32_t *infos = _numbers(info, n)
    cdef const int32_t *groups = _numbers(group, n)
    cdef int8_t[::1] part = out
    cdef uint8_t[::1] state = np.empty(n_groups + 1, np.uint8)
    cdef fp_status status
    with nogil:
        status = fp_parts_find(&tables, rows, infos, groups, n, n_groups, &part[0], &state[0])
    check(status, "parts of calls")
    return out


def _flat(flags):
    """The same bytes in one row; borrowed."""
    return flags.reshape(-1).view(np.uint8)

"""Link backward ranges to forward ranges; find the sequence numbers of each kernel."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core._arrays cimport pointer32, pointer64, pointer8, require_equal
from fastprof._core.fp_link cimport (
    FP_LABEL_BACKWARD, FP_LABEL_NODE, FP_LABEL_RECOMPUTE, FP_LABEL_TORCH, FP_LINK_BACKWARD,
    FP_LINK_FORWARD, FP_LINK_NONE, fp_link, fp_link_calls, fp_link_calls_of, fp_link_frames,
    fp_link_meanings, fp_link_numbers, fp_link_others, fp_link_ranges, fp_link_roles, fp_link_sub,
)
from fastprof._core.fp_status cimport FP_MORE, fp_status
from fastprof._core._status cimport check


NONE = FP_LINK_NONE
FORWARD = FP_LINK_FORWARD
BACKWARD = FP_LINK_BACKWARD

# Properties of a label, as bits.
LABEL_TORCH = FP_LABEL_TORCH
LABEL_BACKWARD = FP_LABEL_BACKWARD
LABEL_NODE = FP_LABEL_NODE
LABEL_RECOMPUTE = FP_LABEL_RECOMPUTE


def roles(const int32_t[::1] label, const int32_t[::1] thread, const int32_t[::1] frame,
          const int64_t[::1] seq, const uint8_t[::1] bits, const int32_t[::1] parent,
          const uint8_t[::1] in_backward, int32_t n_threads):
    """The role of each range: NONE, FORWARD or BACKWARD, as defined in fp_link.h.

    Parameters
    ----------
    label, thread, frame, seq : [ranges]
        Labels, threads and frames must be valid indices; they are not checked.
    bits : uint8 [labels]
        LABEL_* bits of each label.
    parent, in_backward : [frames]

    Returns
    -------
    uint8 [ranges]
    """
    require_equal((label.shape[0], thread.shape[0], frame.shape[0], seq.shape[0]))
    require_equal((parent.shape[0], in_backward.shape[0]))
    out = np.empty(label.shape[0], np.uint8)
    cdef uint8_t[::1] role = out
    cdef uint8_t[::1] counting = np.empty(n_threads + 1, np.uint8)
    cdef fp_link_ranges ranges
    ranges.n = <int32_t>label.shape[0]
    if ranges.n == 0:
        return out
    ranges.label, ranges.thread, ranges.frame = &label[0], &thread[0], &frame[0]
    ranges.seq, ranges.bits = &seq[0], &bits[0]
    ranges.parent, ranges.in_backward = &parent[0], &in_backward[0]
    with nogil:
        fp_link_roles(&ranges, &counting[0], n_threads, &role[0])
    return out


def forward_of(const uint8_t[::1] role, const int64_t[::1] seq, const int32_t[::1] scope):
    """The forward range of each backward range: the latest with the same number in its scope.

    Parameters
    ----------
    role : [n], NONE, FORWARD or BACKWARD, ranges in order of start
    seq : [n], sequence number of the range
    scope : [n], numbers are matched within one scope

    Returns
    -------
    int32 [n] : index of the forward range, -1 for none
    """
    require_equal((role.shape[0], seq.shape[0], scope.shape[0]))
    cdef int32_t n = <int32_t>role.shape[0]
    out = np.empty(n, np.int32)
    cdef int32_t[::1] forward = out
    cdef fp_status status
    if n:
        with nogil:
            status = fp_link(&role[0], &seq[0], &scope[0], n, &forward[0])
        check(status, "linking backward to forward")
    return out


def calls(const int32_t[::1] parent, const int32_t[::1] range_of_frame, const uint8_t[::1] role,
          const int64_t[::1] seq):
    """The backward call of each frame: the outermost enclosing linking frame with one number.

    Parameters
    ----------
    parent : [n], tree of frames, parents first
    range_of_frame : [n], valid indices; not checked
    role, seq : [ranges], as in `forward_of`

    Returns
    -------
    call : int32 [n], a frame; -1 outside all backward frames
    links : uint8 [n], 1 for a frame whose range links to a forward range
    """
    require_equal((parent.shape[0], range_of_frame.shape[0]))
    require_equal((role.shape[0], seq.shape[0]))
    cdef int32_t n = <int32_t>parent.shape[0]
    out, linking = np.empty(n, np.int32), np.empty(n, np.uint8)
    cdef int32_t[::1] call = out
    cdef uint8_t[::1] links = linking
    cdef fp_status status
    if n:
        with nogil:
            status = fp_link_calls(&parent[0], &range_of_frame[0], n, &role[0], &seq[0], &call[0],
                                   &links[0])
        check(status, "backward calls")
    return out, linking


def meanings(const int32_t[::1] call, const int32_t[::1] range_of_frame,
             const uint8_t[::1] in_backward, const int32_t[::1] forward,
             const int32_t[::1] frame_of_range):
    """The frame that gives the meaning of each frame: of a linked backward call, the frame of the
    forward range; otherwise the frame itself.

    Parameters
    ----------
    call, range_of_frame, in_backward : [n], as in `calls` and `roles`
    forward, frame_of_range : [ranges]

    Returns
    -------
    int32 [n] : a frame
    """
    require_equal((call.shape[0], range_of_frame.shape[0], in_backward.shape[0]))
    require_equal((forward.shape[0], frame_of_range.shape[0]))
    cdef fp_link_calls_of of_frames
    cdef int32_t n_ranges = <int32_t>forward.shape[0]
    of_frames.n = <int32_t>call.shape[0]
    out = np.empty(of_frames.n, np.int32)
    cdef int32_t[::1] meaning = out
    cdef fp_status status
    if of_frames.n and not n_ranges:
        raise ValueError(f"expected ranges for {of_frames.n} frames, found none")
    if of_frames.n:
        of_frames.call, of_frames.range = &call[0], &range_of_frame[0]
        of_frames.in_backward, of_frames.forward = &in_backward[0], &forward[0]
        with nogil:
            status = fp_link_meanings(&of_frames, &frame_of_range[0], n_ranges, &meaning[0])
        check(status, "meanings of frames")
    return out


def numbers(const int32_t[::1] parent, const int32_t[::1] range_of_frame,
            const uint8_t[::1] backward, const int64_t[::1] seq, const int32_t[::1] label,
            const uint8_t[::1] is_torch, const int32_t[::1] frame, const uint8_t[::1] inside,
            int32_t depth):
    """The sequence numbers of each kernel.

    Parameters
    ----------
    parent, range_of_frame, backward : [frames], tree, range and backward flag of each frame
    seq, label : [ranges], sequence number (-1 for none) and label of each range
    is_torch : uint8 [labels], 1 for labels whose numbers count
    frame, inside : [n], innermost frame of each kernel (-1 for none); 1 inside a backward pass
    depth : length of the longest chain of frames

    Returns
    -------
    seq_of : int64 [n], the number that links forward and backward, -1 for none
    offsets : int64 [n + 1], slices of `others`
    others : int64, the other numbers of each kernel: others[offsets[i]:offsets[i + 1]], ascending
    """
    require_equal((parent.shape[0], range_of_frame.shape[0], backward.shape[0]))
    require_equal((seq.shape[0], label.shape[0]))
    require_equal((frame.shape[0], inside.shape[0]))
    cdef int64_t n = frame.shape[0]
    seqs, offsets = np.empty(n, np.int64), np.zeros(n + 1, np.int64)
    cdef int64_t[::1] seq_of = seqs
    cdef int64_t[::1] offset = offsets
    cdef int64_t[::1] scratch = np.empty(depth + 1, np.int64)
    cdef int64_t[::1] number
    cdef fp_link_frames frames
    cdef fp_link_others found
    cdef fp_status status = FP_MORE
    if n == 0 or parent.shape[0] == 0:
        seqs[:] = -1
        return seqs, offsets, np.empty(0, np.int64)
    frames.n_ranges, frames.n_labels = <int32_t>seq.shape[0], <int32_t>is_torch.shape[0]
    frames.parent, frames.range = &parent[0], &range_of_frame[0]
    frames.backward = &backward[0]
    frames.seq, frames.label = pointer64(seq), pointer32(label)
    frames.is_torch = pointer8(is_torch)
    found.n, found.capacity, found.end = 0, 0, &offset[1]
    others = np.empty(0, np.int64)
    while status == FP_MORE:
        others = np.append(others, np.empty(n // 8 + 1 + found.capacity, np.int64))
        number, found.capacity = others, others.shape[0]
        found.number = &number[0]
        with nogil:
            status = fp_link_numbers(&frames, &frame[0], &inside[0], n, &scratch[0], depth,
                                     &seq_of[0], &found)
    check(status, "sequence numbers")
    return seqs, offsets, others[:offsets[n]].copy()


def sub(const int32_t[::1] process, const int64_t[::1] seq, const int32_t[::1] operator_id,
        int32_t n_processes):
    """Position of each row in its run: consecutive rows of a process with the same sequence number
    and operator are counted from 0. int32 [n]."""
    require_equal((process.shape[0], seq.shape[0], operator_id.shape[0]))
    cdef int64_t n = seq.shape[0]
    out = np.zeros(n, np.int32)
    cdef int32_t[::1] value = out
    cdef int64_t[::1] last_seq = np.empty(n_processes + 1, np.int64)
    cdef int32_t[::1] last_operator = np.empty(n_processes + 1, np.int32)
    cdef int32_t[::1] last_sub = np.empty(n_processes + 1, np.int32)
    cdef fp_status status
    if n:
        with nogil:
            status = fp_link_sub(&process[0], &seq[0], &operator_id[0], n, &last_seq[0],
                                 &last_operator[0], &last_sub[0], n_processes, &value[0])
        check(status, "sub")
    return out

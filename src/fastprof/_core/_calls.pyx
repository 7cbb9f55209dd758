"""Find the call that each kernel works for."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t

from fastprof._core._arrays cimport numbers, pointer32, pointer64, require_equal, written32
from fastprof._core.fp_calls cimport (
    FP_ALL_TAKEN, FP_CALLS_SCRATCH, FP_CALL_BIAS, FP_CALL_BIAS_BACKWARD, FP_CALL_FAMILY,
    FP_CALL_FORMULA, FP_CALL_GRADIENT, FP_CALL_KNOWN, FP_CALL_MATRICES, FP_CALL_MOVES,
    FP_CALL_UNKNOWN_BACKWARD, FP_FRAME_ENGINE, FP_FRAME_FITS, FP_FRAME_NODE, FP_SOME_TAKEN,
    fp_calls_find, fp_calls_frames, fp_calls_instances, fp_calls_of, fp_calls_outside, fp_kind,
)
from fastprof._core.fp_join cimport fp_next, fp_next_kernels
from fastprof._core.fp_names cimport fp_names_bytes, fp_names_count, fp_names_free, fp_names_new
from fastprof._core.fp_status cimport FP_MORE, fp_status
from fastprof._core._status cimport check


# Properties of a label's call, as bits.
KNOWN, UNKNOWN_BACKWARD, FAMILY = FP_CALL_KNOWN, FP_CALL_UNKNOWN_BACKWARD, FP_CALL_FAMILY
GRADIENT, MOVES = FP_CALL_GRADIENT, FP_CALL_MOVES
BIAS, BIAS_BACKWARD = FP_CALL_BIAS, FP_CALL_BIAS_BACKWARD
MATRICES, FORMULA = FP_CALL_MATRICES, FP_CALL_FORMULA

# Properties of a label for `outside`, as bits.
ENGINE, NODE, FITS = FP_FRAME_ENGINE, FP_FRAME_NODE, FP_FRAME_FITS

SOME_TAKEN, ALL_TAKEN = FP_SOME_TAKEN, FP_ALL_TAKEN


cdef uint8_t *_set(array):
    cdef uint8_t[::1] flags = array.view(np.uint8)
    return &flags[0]


def outside(parent, label, const uint8_t[::1] bits):
    """Whether each frame is work of the engine for an autograd node but outside of it, bool [n].

    Parameters
    ----------
    parent, label : int32 [n], tree of frames, parents first
    bits : uint8 [labels]
        ENGINE: the engine's range of a node, NODE: the node itself, FITS: an operator that, as a
        child of the engine's range, adapts a gradient to its input and is not outside.
    """
    cdef int32_t n = len(parent), n_labels = <int32_t>bits.shape[0]
    cdef const int32_t *parents = numbers(parent, n)
    cdef const int32_t *labels = numbers(label, n)
    out = np.empty(n, np.bool_)
    cdef uint8_t *flag
    cdef fp_status status
    if n == 0:
        return out
    flag = _set(out)
    with nogil:
        status = fp_calls_outside(parents, labels, n, &bits[0] if n_labels else NULL, n_labels,
                                  flag)
    check(status, "work outside of autograd nodes")
    return out


def instances(backward, meaning, picked):
    """One frame for all backward calls of a forward call, int32 [n]; others are themselves.

    If the autograd graph is traversed again, the second backward call of the same forward frame is
    a separate instance.

    Parameters
    ----------
    backward, meaning, picked : int32 [n]
        The enclosing backward call; of backward calls, the forward frame; the frame of the call
        that the frame is part of. -1 for none.
    """
    cdef int32_t n = len(backward)
    cdef const int32_t *backwards = numbers(backward, n)
    cdef const int32_t *meanings = numbers(meaning, n)
    cdef const int32_t *calls = numbers(picked, n)
    out = np.empty(n, np.int32)
    cdef int32_t *instance
    cdef int32_t *scratch
    cdef fp_status status
    if n == 0:
        return out
    room = np.empty(2 * n, np.int32)
    instance, scratch = written32(out), written32(room)
    with nogil:
        status = fp_calls_instances(backwards, meanings, calls, n, scratch, instance)
    check(status, "instances of backward calls")
    return out


def find(frame, meaning, frames, says, labels, outside=None):
    """Find the call that each kernel works for and the call that determines its cost.

    Parameters
    ----------
    frame, meaning : int32 [kernels]
        The kernel's frame, and the frame that gives its purpose; -1 for none.
    frames : sequence of int32 [frames]; -1 for none
        parent : the parent frame; parents precede their children
        label : label of the frame's range
        range_ : the range, 0 .. frames - 1; crossing ranges have several frames
        picked : the frame of the call that the frame is part of: itself or an ancestor
        inner : the innermost enclosing frame whose cost is known
        backward : the enclosing backward call
        instance : for backward calls, one frame that represents all backward calls of the same
            forward call
    says : uint16 [labels], bits:
        KNOWN: the cost of the call is known.
        UNKNOWN_BACKWARD: the cost of its backward pass is unknown.
        FAMILY: a matrix product, a convolution or attention.
        GRADIENT: an operator of the backward pass.
        MOVES: computes nothing.
        BIAS, BIAS_BACKWARD: does the work of further operators in addition to its products.
        MATRICES: a matrix product.
        FORMULA: the operator has a formula, whose arguments may be missing.
    labels : sequence of int32 [labels], numbers that are equal for equal values; -1 for none
        name : the operator; -1 without arguments
        overload : the operator and which arguments have sizes
        sizes : the combination of sizes
        dtypes : the combination of types the call uses
        flops : the FLOPs of its products; -1 if unknown
    outside : bool [frames], optional
        Work of the engine outside of the node: its own frame gives its purpose.

    Returns
    -------
    kinds : (calls, is_backward, is_gradient)
        The distinct calls, in order of first appearance.
        calls : int32 [kinds, 3], labels, -1 for none: of the call; of the work that determines the
            cost, which is the call itself or one inside it; of the operator that the kernel does
            in addition to the products of the work
        is_backward : bool [kinds], whether a backward kernel works for this forward call
        is_gradient : bool [kinds], whether the kernel does the backward pass of the work
    kind : int32 [kernels]
        Index into `kinds`.
    group : int32 [kernels]
        Instance of the call that determines the cost, numbered in order of appearance; -1 for none.
    taken : uint8 [groups]
        Number of main parts that operators inside do, ALL_TAKEN for all; SOME_TAKEN: operators
        inside have some of the cost, and kernels of main parts outside of them the rest.
    instance : int32 [kernels]
        Instance of the reported call: twice the range that represents it, plus 1 in the backward
        pass; -1 for none.
    """
    cdef int64_t n = len(frame)
    cdef int32_t n_groups = 0
    cdef fp_calls_frames table
    parent, label, range_, picked, inner, backward, instance = frames
    table.n_frames, table.n_labels = len(label), len(says)
    table.parent = numbers(parent, table.n_frames)
    table.label = numbers(label, table.n_frames)
    table.range = numbers(range_, table.n_frames)
    table.picked = numbers(picked, table.n_frames)
    table.inner = numbers(inner, table.n_frames)
    table.backward = numbers(backward, table.n_frames)
    table.instance = numbers(instance, table.n_frames)
    cdef const uint16_t[::1] bits = says
    table.says = &bits[0] if table.n_labels else NULL
    cdef const uint8_t[::1] flags
    table.outside = NULL
    if outside is not None and table.n_frames:
        flags = outside.view(np.uint8)
        if flags.shape[0] != table.n_frames:
            raise ValueError(f"expected {table.n_frames} flags, found {flags.shape[0]}")
        table.outside = &flags[0]
    name, overload, sizes, dtypes, flops = labels
    table.name = numbers(name, table.n_labels)
    table.overload = numbers(overload, table.n_labels)
    table.sizes = numbers(sizes, table.n_labels)
    table.dtypes = numbers(dtypes, table.n_labels)
    table.flops = numbers(flops, table.n_labels)
    cdef const int32_t *own = numbers(frame, n)
    cdef const int32_t *of_meaning = numbers(meaning, n)
    kinds, groups, instances = (np.empty(n, np.int32) for _ in range(3))
    all_taken = np.empty(min(n, table.n_frames) + 1, np.uint8)
    if n == 0:
        return _columns(NULL, 0), kinds, groups, all_taken[:0], instances
    cdef fp_calls_of found
    cdef const int64_t *offsets = NULL
    found.kind, found.group = written32(kinds), written32(groups)
    found.instance = written32(instances)
    cdef uint8_t *taken = _set(all_taken)
    room = np.empty(FP_CALLS_SCRATCH(table.n_frames), np.int32)
    cdef int32_t *scratch = written32(room)
    cdef fp_status status
    found.kinds = fp_names_new()
    if found.kinds is NULL:
        raise MemoryError("finding calls: out of memory")
    try:
        with nogil:
            status = fp_calls_find(&table, own, of_meaning, n, &found, taken, scratch, &n_groups)
        check(status, "finding calls")
        distinct = _columns(
            <const fp_kind *>fp_names_bytes(found.kinds, &offsets), fp_names_count(found.kinds)
        )
    finally:
        fp_names_free(found.kinds)
    return distinct, kinds, groups, all_taken[:n_groups].copy(), instances


def following(const int32_t[::1] launch, const int32_t[::1] thread, const int64_t[::1] start,
              int32_t n_threads, const int64_t[::1] rows):
    """The kernel launched next on the same thread after each of some kernels.

    Parameters
    ----------
    launch : int32 [n], the launch of each kernel, -1 for none
    thread, start : int32 and int64 [launches]; thread -1 for none
    rows : int64 [m], kernels with a launch, strictly ascending

    Returns
    -------
    int64 [m], -1 for none; None if the kernels of a thread are not in order of launch
    """
    cdef fp_next_kernels kernels
    cdef int64_t n_rows = rows.shape[0]
    require_equal((thread.shape[0], start.shape[0]))
    out = np.empty(n_rows, np.int64)
    if n_rows == 0:
        return out
    kernels.n, kernels.n_launches = launch.shape[0], <int32_t>thread.shape[0]
    kernels.n_threads = n_threads
    kernels.launch, kernels.thread = pointer32(launch), pointer32(thread)
    kernels.start = pointer64(start)
    cdef int64_t[:, ::1] scratch = np.empty((2, n_threads + 1), np.int64)
    cdef int64_t[::1] next_ = out
    cdef fp_status status
    with nogil:
        status = fp_next(&kernels, &rows[0], n_rows, &scratch[0, 0], &scratch[1, 0], &next_[0])
    check(status, "kernels launched next")
    return None if status == FP_MORE else out


cdef tuple _columns(const fp_kind *kinds, int32_t n):
    """The kinds as `find` returns them."""
    calls, backward, gradient = np.empty((n, 3), np.int32), np.empty(n, bool), np.empty(n, bool)
    cdef int32_t[:, ::1] call = calls
    cdef uint8_t[::1] is_backward = backward.view(np.uint8), is_gradient = gradient.view(np.uint8)
    cdef int32_t i
    for i in range(n):
        call[i, 0], call[i, 1], call[i, 2] = kinds[i].label, kinds[i].work, kinds[i].helper
        is_backward[i], is_gradient[i] = kinds[i].is_backward, kinds[i].is_gradient
    return calls, backward, gradient

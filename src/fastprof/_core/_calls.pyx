"""Find the call that each kernel works for."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t

from fastprof._core._c cimport FP_MORE, fp_status
from fastprof._core._status cimport check


cdef extern from "cost/fp_kinds.h":
    ctypedef struct fp_kind:
        int32_t label
        int32_t work
        int32_t helper
        uint8_t is_backward
        uint8_t is_gradient

    ctypedef struct fp_kinds:
        pass
    fp_kinds *fp_kinds_new() nogil
    void fp_kinds_free(fp_kinds *kinds) nogil
    int32_t fp_kinds_count(const fp_kinds *kinds) nogil
    fp_kind fp_kinds_at(const fp_kinds *kinds, int32_t id) nogil


cdef extern from "path/fp_next.h":
    ctypedef struct fp_next_kernels:
        const int32_t *launch
        const int32_t *thread
        const int64_t *start
        int64_t n
        int32_t n_launches
        int32_t n_threads

    fp_status fp_next(const fp_next_kernels *kernels, const int64_t *rows, int64_t n_rows,
                      int64_t *last, int64_t *waiting, int64_t *next) nogil


cdef extern from "cost/fp_calls.h":
    int FP_CALL_KNOWN, FP_CALL_UNKNOWN_BACKWARD, FP_CALL_FAMILY, FP_CALL_GRADIENT, FP_CALL_MOVES
    int FP_CALL_BIAS, FP_CALL_BIAS_BACKWARD, FP_CALL_MATRICES, FP_CALL_FORMULA
    int FP_SOME_TAKEN, FP_ALL_TAKEN
    size_t FP_CALLS_SCRATCH(int32_t n_frames) nogil

    int FP_FRAME_ENGINE, FP_FRAME_NODE, FP_FRAME_FITS
    fp_status fp_calls_outside(const int32_t *parent, const int32_t *label, int32_t n,
                               const uint8_t *bits, int32_t n_labels, uint8_t *outside) nogil

    fp_status fp_calls_instances(const int32_t *backward, const int32_t *meaning,
                                 const int32_t *picked, int32_t n, int32_t *scratch,
                                 int32_t *instance) nogil

    ctypedef struct fp_calls_frames:
        int32_t n_frames
        int32_t n_labels
        const int32_t *parent
        const int32_t *label
        const int32_t *range
        const int32_t *picked
        const int32_t *inner
        const int32_t *backward
        const int32_t *instance
        const uint8_t *outside
        const uint16_t *says
        const int32_t *name
        const int32_t *overload
        const int32_t *sizes
        const int32_t *dtypes
        const int32_t *flops

    ctypedef struct fp_calls_of:
        int32_t *kind
        int32_t *group
        int32_t *instance
        fp_kinds *kinds

    fp_status fp_calls_find(
        const fp_calls_frames *frames, const int32_t *frame, const int32_t *meaning, int64_t n,
        const fp_calls_of *of, uint8_t *taken, int32_t *scratch, int32_t *n_groups) nogil


# Properties of a label's call, as bits.
KNOWN, UNKNOWN_BACKWARD, FAMILY = FP_CALL_KNOWN, FP_CALL_UNKNOWN_BACKWARD, FP_CALL_FAMILY
GRADIENT, MOVES = FP_CALL_GRADIENT, FP_CALL_MOVES
BIAS, BIAS_BACKWARD = FP_CALL_BIAS, FP_CALL_BIAS_BACKWARD
MATRICES, FORMULA = FP_CALL_MATRICES, FP_CALL_FORMULA

# Properties of a label for `outside`, as bits.
ENGINE, NODE, FITS = FP_FRAME_ENGINE, FP_FRAME_NODE, FP_FRAME_FITS

SOME_TAKEN, ALL_TAKEN = FP_SOME_TAKEN, FP_ALL_TAKEN


cdef const int32_t *_numbers(const int32_t[::1] array, Py_ssize_t n) except? NULL:
    if array.shape[0] != n:
        raise ValueError(f"expected {n} values, found {array.shape[0]}")
    return &array[0] if n else NULL


cdef int32_t *_written(int32_t[::1] array):
    return &array[0]


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
    cdef const int32_t *parents = _numbers(parent, n)
    cdef const int32_t *labels = _numbers(label, n)
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
    cdef const int32_t *backwards = _numbers(backward, n)
    cdef const int32_t *meanings = _numbers(meaning, n)
    cdef const int32_t *calls = _numbers(picked, n)
    out = np.empty(n, np.int32)
    cdef int32_t *instance
    cdef int32_t *scratch
    cdef fp_status status
    if n == 0:
        return out
    room = np.empty(2 * n, np.int32)
    instance, scratch = _written(out), _written(room)
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
    kinds : list of (label, is_backward, work, is_gradient, helper)
        The distinct calls, in order of first appearance.
        label : int, label of the call, -1 for none
        is_backward : bool, whether a backward kernel works for this forward call
        work : int, label of the call that determines the cost: the call itself, or one inside it
        is_gradient : bool, whether the kernel does the backward pass of `work`
        helper : int, label of the operator that the kernel does in addition to the products of
            `work`, -1 for none
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
    table.parent = _numbers(parent, table.n_frames)
    table.label = _numbers(label, table.n_frames)
    table.range = _numbers(range_, table.n_frames)
    table.picked = _numbers(picked, table.n_frames)
    table.inner = _numbers(inner, table.n_frames)
    table.backward = _numbers(backward, table.n_frames)
    table.instance = _numbers(instance, table.n_frames)
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
    table.name = _numbers(name, table.n_labels)
    table.overload = _numbers(overload, table.n_labels)
    table.sizes = _numbers(sizes, table.n_labels)
    table.dtypes = _numbers(dtypes, table.n_labels)
    table.flops = _numbers(flops, table.n_labels)
    cdef const int32_t *own = _numbers(frame, n)
    cdef const int32_t *of_meaning = _numbers(meaning, n)
    kinds, groups, instances = (np.empty(n, np.int32) for _ in range(3))
    all_taken = np.empty(min(n, table.n_frames) + 1, np.uint8)
    if n == 0:
        return [], kinds, groups, all_taken[:0], instances
    cdef fp_calls_of found
    found.kind, found.group, found.instance = _written(kinds), _written(groups), _written(instances)
    cdef uint8_t *taken = _set(all_taken)
    room = np.empty(FP_CALLS_SCRATCH(table.n_frames), np.int32)
    cdef int32_t *scratch = _written(room)
    cdef fp_status status
    found.kinds = fp_kinds_new()
    if found.kinds is NULL:
        raise MemoryError("finding calls: out of memory")
    try:
        with nogil:
            status = fp_calls_find(&table, own, of_meaning, n, &found, taken, scratch, &n_groups)
        check(status, "finding calls")
        distinct = _read(found.kinds)
    finally:
        fp_kinds_free(found.kinds)
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
    if thread.shape[0] != start.shape[0]:
        raise ValueError(f"lengths differ: {(thread.shape[0], start.shape[0])}")
    out = np.empty(n_rows, np.int64)
    if n_rows == 0:
        return out
    kernels.n, kernels.n_launches = launch.shape[0], <int32_t>thread.shape[0]
    kernels.n_threads = n_threads
    kernels.launch = &launch[0] if kernels.n else NULL
    kernels.thread = &thread[0] if kernels.n_launches else NULL
    kernels.start = &start[0] if kernels.n_launches else NULL
    cdef int64_t[:, ::1] scratch = np.empty((2, n_threads + 1), np.int64)
    cdef int64_t[::1] next_ = out
    cdef fp_status status
    with nogil:
        status = fp_next(&kernels, &rows[0], n_rows, &scratch[0, 0], &scratch[1, 0], &next_[0])
    check(status, "kernels launched next")
    return None if status == FP_MORE else out


cdef list _read(const fp_kinds *kinds):
    """The kinds as tuples."""
    cdef int32_t i
    cdef fp_kind each
    out = []
    for i in range(fp_kinds_count(kinds)):
        each = fp_kinds_at(kinds, i)
        out.append((each.label, bool(each.is_backward), each.work, bool(each.is_gradient),
                    each.helper))
    return out

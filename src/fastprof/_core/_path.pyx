"""Build the call-path tree, and propagate values along trees of frames and nodes."""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from fastprof._core._arrays cimport pointer32, pointer8
from fastprof._core.fp_path cimport (
    FP_BACKWARD, FP_FORWARD, FP_NOWHERE, FP_NO_RANK, FP_SAYS_BACKWARD, FP_SAYS_FORWARD,
    FP_SAYS_TORCH, fp_path, fp_path_best, fp_path_depth, fp_path_directions, fp_path_innermost,
    fp_path_misplaced, fp_path_nearest, fp_path_number, fp_path_sums,
)
from fastprof._core.fp_status cimport fp_status
from fastprof._core._status cimport check
from fastprof._core._tree cimport Tree as Labels


NO_RANK = FP_NO_RANK

# Bits of a label that determine directions, and the directions.
SAYS_BACKWARD, SAYS_FORWARD, SAYS_TORCH = FP_SAYS_BACKWARD, FP_SAYS_FORWARD, FP_SAYS_TORCH
NOWHERE, FORWARD, BACKWARD = FP_NOWHERE, FP_FORWARD, FP_BACKWARD


cdef int32_t _length(const int32_t[::1] parent, const int32_t[::1] other) except -1:
    if parent.shape[0] != other.shape[0] or parent.shape[0] > 2147483647:
        raise ValueError(f"expected equal lengths up to 2147483647, found {parent.shape[0]} and "
                         f"{other.shape[0]}")
    return <int32_t>parent.shape[0]


def nodes(const int32_t[::1] parent, const int32_t[::1] label, int32_t n_labels, wanted=None):
    """Merge frames with equal chains of labels into nodes.

    Parameters
    ----------
    parent : [n], parent of each frame; parents precede their children; -1 at roots
    label : [n], label of each frame, 0 .. n_labels - 1
    wanted : uint8 [n_labels], 1 for labels to keep; frames of other labels get their parent's node

    Returns
    -------
    node_of_frame : int32 [n], -1 for none
    node_parent, node_label : int32 [nodes], parents first
    """
    cdef int32_t n = _length(parent, label)
    cdef const uint8_t[::1] mask
    cdef const uint8_t *mask_address = NULL
    if wanted is not None:
        mask = wanted
        if mask.shape[0] != n_labels:
            raise ValueError(f"expected {n_labels} flags, found {mask.shape[0]}")
        if n_labels:
            mask_address = &mask[0]
    cdef Labels tree = Labels()
    out = np.empty(n, np.int32)
    cdef int32_t[::1] node = out
    cdef fp_status status
    if n:
        with nogil:
            status = fp_path(&parent[0], &label[0], n, mask_address, n_labels, tree.nodes, &node[0])
        check(status, "call paths")
    return out, *tree.read()


def innermost(const int32_t[::1] parent, const int32_t[::1] own):
    """The innermost value around each entry, int32 [n]: own[i], or the parent's if own[i] is -1."""
    cdef int32_t n = _length(parent, own)
    out = np.empty(n, np.int32)
    cdef int32_t[::1] value = out
    cdef fp_status status
    if n:
        with nogil:
            status = fp_path_innermost(&parent[0], &own[0], n, &value[0])
        check(status, "values along call paths")
    return out


def nearest(const int32_t[::1] parent, const int32_t[::1] label, const uint8_t[::1] wanted):
    """The innermost entry with a wanted label on the path from the root to each entry.

    Parameters
    ----------
    parent : [n], parents precede their children, -1 at roots
    label : [n]
    wanted : uint8 [labels], 1 for wanted labels

    Returns
    -------
    int32 [n], -1 for none
    """
    cdef int32_t n = _length(parent, label), n_labels = <int32_t>wanted.shape[0]
    out = np.empty(n, np.int32)
    cdef int32_t[::1] entry = out
    cdef fp_status status
    if n:
        with nogil:
            status = fp_path_nearest(&parent[0], &label[0], n, pointer8(wanted),
                                     n_labels, &entry[0])
        check(status, "the nearest along call paths")
    return out


def best(const int32_t[::1] parent, const int32_t[::1] label, const uint8_t[::1] rank):
    """The entry with the lowest rank on the path from the root to each entry; ties go to the
    outermost.

    Parameters
    ----------
    parent : [n], parents precede their children, -1 at roots
    label : [n]
    rank : uint8 [labels], NO_RANK for labels to ignore

    Returns
    -------
    int32 [n], -1 for none
    """
    cdef int32_t n = _length(parent, label), n_labels = <int32_t>rank.shape[0]
    out = np.empty(n, np.int32)
    cdef int32_t[::1] entry = out
    cdef fp_status status
    if n:
        with nogil:
            status = fp_path_best(&parent[0], &label[0], n, pointer8(rank),
                                  n_labels, &entry[0])
        check(status, "the best along call paths")
    return out


def best_of_rank(const int32_t[::1] parent, const int32_t[::1] label, const uint8_t[::1] rank,
                 uint8_t only):
    """The best entries, as in `best`, whose rank is `only`.

    Returns
    -------
    number : int32 [n], index into `entries`, -1 where the best has another rank
    entries : int32 [distinct entries], ascending
    """
    cdef int32_t n = _length(parent, label), n_entries = 0
    numbers, entries = best(parent, label, rank), np.empty(n, np.int32)
    cdef int32_t[::1] number = numbers
    cdef int32_t[::1] entry = entries
    if n:
        with nogil:
            fp_path_number(&label[0], n, &rank[0], only, &number[0], &entry[0], &n_entries)
    return numbers, entries[:n_entries].copy()


def directions(const int32_t[::1] parent, const int32_t[::1] label, const uint8_t[::1] says):
    """The direction of each entry of a tree.

    Parameters
    ----------
    parent : [n], parents precede their children, -1 at roots
    label : [n]
    says : uint8 [labels], SAYS_* bits of each label; the nearest enclosing label takes precedence

    Returns
    -------
    uint8 [n] : BACKWARD, FORWARD (in a range of torch, not backward) or NOWHERE
    """
    cdef int32_t n = _length(parent, label), n_labels = <int32_t>says.shape[0]
    out = np.empty(n, np.uint8)
    cdef uint8_t[::1] direction = out
    cdef fp_status status
    if n:
        with nogil:
            status = fp_path_directions(&parent[0], &label[0], n, pointer8(says),
                                        n_labels, &direction[0])
        check(status, "directions along call paths")
    return out


def sums(const int32_t[::1] parent, const int64_t[::1] own):
    """The sum of `own` over each subtree, int64 [n]; sums wrap around."""
    if parent.shape[0] != own.shape[0]:
        raise ValueError(f"expected {parent.shape[0]} values, found {own.shape[0]}")
    cdef int32_t n = _length(parent, parent)
    out = np.array(own, np.int64)
    cdef int64_t[::1] value = out
    cdef fp_status status
    if n:
        with nogil:
            status = fp_path_sums(&parent[0], n, &value[0])
        check(status, "sums along call paths")
    return out


def depth(const int32_t[::1] parent):
    """The depth of a tree: the length of its longest chain. Parents must precede children."""
    cdef int32_t n = _length(parent, parent)
    cdef int32_t[::1] scratch = np.empty(n + 1, np.int32)
    if n == 0:
        return 0
    return fp_path_depth(&parent[0], n, &scratch[0])


def levels(const int32_t[::1] parent):
    """The number of entries above each entry of a tree, int32 [n]. Parents must precede children.
    """
    cdef int32_t n = _length(parent, parent)
    out = np.empty(n, np.int32)
    cdef int32_t[::1] level = out
    if n:
        with nogil:
            fp_path_depth(&parent[0], n, &level[0])
        out -= 1
    return out


def misplaced(const int32_t[::1] parent, const int32_t[::1] node, const int32_t[::1] above):
    """The number of frames whose node is not below their parent's node; -1 for an invalid tree.

    Parameters
    ----------
    parent, node : [n], parent and node of each frame, -1 for none
    above : [nodes], parent of each node, -1 for none
    """
    cdef int32_t n = _length(parent, node), n_nodes = <int32_t>above.shape[0], found
    cdef const int32_t *parents = pointer32(parent)
    cdef const int32_t *nodes = pointer32(node)
    cdef const int32_t *of_nodes = pointer32(above)
    with nogil:
        found = fp_path_misplaced(parents, nodes, n, of_nodes, n_nodes)
    return found

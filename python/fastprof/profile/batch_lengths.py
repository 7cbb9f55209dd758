"""What a serving stack's range says of its batch, as an argument of the attention inside.

vLLM, SGLang and ATOM write the lengths of the sequences of a batch into the name of the range
around it (`fastprof.ops.serving.lengths`). An attention operator's own arguments do not hold them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core import _path
from fastprof._core._take import take
from fastprof.model.call import Arg
from fastprof.model.markers import Meaning
from fastprof.ops.serving.lengths import is_batch, is_detailed
from fastprof.profile.callpath.attribution import Attribution

Int32 = npt.NDArray[np.int32]

_BATCH = "batch"  # the parameter of a formula that asks for it
_NONE = np.int32(-1)


class Batches(NamedTuple):
    """What `with_batches` finds.

    Parameters
    ----------
    meanings : what each label means: those that there were, and new ones at the end
    labels : columns of labels as they were given, with the new ones in place
    of_kernel : [kernels] the label of the range that tells the batch of a kernel's call, -1 for
        none; None where there is none at all
    """

    meanings: list[Meaning]
    labels: list[Int32]
    of_kernel: Int32 | None


def with_batches(
    found: Attribution, meanings: list[Meaning], label_of_frame: Int32, labels: Sequence[Int32]
) -> Batches:
    """Give calls whose formula asks for it the name of the batch's range around their launch.

    The launch, not the call: a graph that is replayed works for the batch of its launch.

    Parameters
    ----------
    meanings : what each label means
    label_of_frame : [frames]
    labels : columns of [kernels]: labels of calls, -1 for none
    """
    unchanged = Batches(meanings, list(labels), None)
    asks = np.array([*map(_asks, meanings), False])  # the last for label -1
    if not asks.any():
        return unchanged
    ranks = np.array([_rank(meaning.name) for meaning in meanings], np.uint8)
    if (ranks == _path.NO_RANK).all():
        return unchanged
    around = _path.best(found.frame_parent, label_of_frame, ranks)
    launch = found.launch_frame_of_kernel
    frame = np.where(launch >= 0, launch, found.frame_of_kernel)
    batch = take(label_of_frame, take(around, frame))
    told, columns, of_kernel = list(meanings), [], np.full(len(batch), _NONE)
    for label in labels:
        rows = np.flatnonzero(asks[label] & (batch >= 0))
        key = label[rows].astype(np.int64) * len(meanings) + batch[rows]
        pairs, place = np.unique(key, return_inverse=True)
        column = label.copy()
        column[rows] = len(told) + place
        told += [_told(meanings[k // len(meanings)], meanings[k % len(meanings)]) for k in pairs]
        columns.append(column)
        of_kernel[rows] = batch[rows]
    return Batches(told, columns, of_kernel)


def _rank(name: str) -> int:
    # A range that tells the sums comes before one that tells totals.
    if not is_batch(name):
        return _path.NO_RANK
    return 0 if is_detailed(name) else 1


def _asks(meaning: Meaning) -> bool:
    if meaning.call is None or not meaning.has_arguments:
        return False
    formula = ops.find(meaning.call)
    return formula is not None and _BATCH in formula.allowed


def _told(meaning: Meaning, batch: Meaning) -> Meaning:
    if meaning.call is None:
        return meaning
    args = (*meaning.call.args, Arg(_BATCH, batch.name))
    return replace(meaning, call=replace(meaning.call, args=args))

"""What a serving stack's range says of its batch, as an argument of the attention inside.

vLLM, SGLang and ATOM write the lengths of the sequences of a batch into the name of the range
around it (`fastprof.ops.serving.lengths`). An attention operator's own arguments do not hold them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fastprof import _path, _pools, ops
from fastprof._take import take
from fastprof.attribute import Attribution
from fastprof.call import Arg
from fastprof.markers import Meaning
from fastprof.ops.serving.lengths import is_batch, is_detailed

Int32 = npt.NDArray[np.int32]

_BATCH = "batch"  # the parameter of a formula that asks for it
_NONE = np.int32(-1)


def with_batches(
    found: Attribution, label_of_frame: Int32, label: Int32, group: Int32, n_groups: int
) -> tuple[list[Meaning], Int32, Int32, int]:
    """Give calls whose formula asks for it the name of the batch's range around their launch.

    The launch, not the call: a graph that is replayed works for the batch of its launch.

    Parameters
    ----------
    label_of_frame : [frames]
    label : [kernels] the label of the call of each kernel, -1 for none
    group : [kernels] which instance of the call, 0 .. n_groups - 1, -1 for none

    Returns
    -------
    tuple
        The meanings with new ones at the end, and label, group and number of groups, where the same
        call in two batches is two: all as they were where no range tells a batch.
    """
    meanings = found.meanings
    unchanged = meanings, label, group, n_groups
    asks = np.array([*map(_asks, meanings), False])  # the last for label -1
    if not asks.any():
        return unchanged
    ranks = np.array([_rank(meaning.name) for meaning in meanings], np.uint8)
    if (ranks == _path.NO_RANK).all():
        return unchanged
    around = _path.best(found.frame_parent, label_of_frame, ranks)
    launch = found.launch_frame_of_kernel
    frame = np.where(launch >= 0, launch, found.frame_of_kernel)
    telling = np.where(asks[label], take(label_of_frame, take(around, frame)), _NONE)
    rows = np.flatnonzero(telling >= 0)
    pairs, place = np.unique(
        label[rows].astype(np.int64) * len(meanings) + telling[rows], return_inverse=True
    )
    told = [
        _told(meanings[pair // len(meanings)], meanings[pair % len(meanings)]) for pair in pairs
    ]
    label = label.copy()
    label[rows] = len(meanings) + place
    group = np.where(group >= 0, _pools.pairs(group, telling), _NONE)
    return [*meanings, *told], label, group, int(group.max(initial=-1)) + 1


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

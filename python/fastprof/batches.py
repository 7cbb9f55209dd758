"""What a serving stack's range says of its batch, as an argument of the attention inside.

vLLM, SGLang and ATOM write the lengths of the sequences of a batch into the name of the range
around it (`fastprof.ops.serving.lengths`). An attention operator's own arguments do not hold them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fastprof import _path, ops
from fastprof.call import Arg
from fastprof.markers import Meaning
from fastprof.ops.serving.lengths import is_batch

Int32 = npt.NDArray[np.int32]

_BATCH = "batch"  # the parameter of a formula that asks for it


def with_batches(
    meanings: list[Meaning], parent: Int32, label: Int32
) -> tuple[list[Meaning], Int32]:
    """Give operators whose formula asks for it the name of the batch's range around them.

    Parameters
    ----------
    meanings : what each label means
    parent, label : [frames] the frame around each frame, and its label

    Returns
    -------
    tuple
        The meanings with new ones at the end, and the label of each frame: the same where no range
        tells a batch.
    """
    tells = np.array([is_batch(meaning.name) for meaning in meanings])
    asks = np.array([_asks(meaning) for meaning in meanings])
    if not tells.any() or not asks.any():
        return meanings, label
    ranks = np.where(tells, 0, _path.NO_RANK).astype(np.uint8)
    around = _path.best(parent, label, ranks)
    frames = np.flatnonzero(asks[label] & (around >= 0))
    key = label[frames].astype(np.int64) * len(meanings) + label[around[frames]]
    pairs, place = np.unique(key, return_inverse=True)
    told = [
        _told(meanings[asking], meanings[telling].name)
        for asking, telling in (divmod(pair, len(meanings)) for pair in pairs.tolist())
    ]
    new = label.copy()
    new[frames] = len(meanings) + place
    return [*meanings, *told], new


def _asks(meaning: Meaning) -> bool:
    if meaning.call is None or not meaning.has_arguments:
        return False
    formula = ops.find(meaning.call)
    return formula is not None and _BATCH in formula.allowed


def _told(meaning: Meaning, name: str) -> Meaning:
    if meaning.call is None:
        return meaning
    call = replace(meaning.call, args=(*meaning.call.args, Arg(_BATCH, name)))
    return replace(meaning, call=call)

"""Sequence lengths of a batch, from the range name of a serving stack to the attention call.

vLLM, SGLang and ATOM write the sequence lengths of a batch into the name of the range around it
(`fastprof.ops.libraries.serving.lengths`). The arguments of attention operators lack them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from fastprof import ops
from fastprof._core import _path
from fastprof._core._pools import pairs
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.model.arrays import Int32
from fastprof.model.call import Arg
from fastprof.model.markers import Meaning
from fastprof.ops.libraries.serving.lengths import is_batch, is_detailed
from fastprof.profile.call_kinds import CallKind
from fastprof.profile.callpath.attribution import Attribution

_BATCH = "batch"  # parameter name in formulas
_NONE = np.int32(-1)


class Batches(NamedTuple):
    """Result of `with_batches`.

    Parameters
    ----------
    meanings : the given meanings, then those of new labels
    kinds : the distinct kinds, with new labels
    kind : [kernels] index into `kinds`
    of_kernel : [kernels] the label of the batch's range, -1 for none; None if no kernel has one
    """

    meanings: list[Meaning]
    kinds: list[CallKind]
    kind: Int32
    of_kernel: Int32 | None


def with_batches(
    found: Attribution,
    meanings: list[Meaning],
    label_of_frame: Int32,
    kinds: list[CallKind],
    kind: Int32,
) -> Batches:
    """Add the name of the batch's range to the arguments of calls whose formula takes it.

    The range is that around the launch, not the call: a replayed graph processes the batch of its
    launch.

    Parameters
    ----------
    meanings : [labels]
    label_of_frame : [frames]
    kinds : the distinct kinds, of labels
    kind : [kernels] index into `kinds`
    """
    unchanged = Batches(meanings, kinds, kind, None)
    needs = [*map(_needs_batch, meanings), False]  # the last for label -1
    if not any(needs):
        return unchanged
    ranks = np.array([_rank(meaning.name) for meaning in meanings], np.uint8)
    if (ranks == _path.NO_RANK).all():
        return unchanged
    around = _path.best(found.frame_parent, label_of_frame, ranks)
    launch = found.launch_frame_of_kernel
    frame = np.where(launch >= 0, launch, found.frame_of_kernel)
    batch = take(label_of_frame, take(around, frame))
    needed = np.array([any(needs[label] for label in each.calls) for each in kinds], bool)
    of_kernel = np.where(take(needed, kind), batch, _NONE)
    pair, firsts = pairs(kind, of_kernel)
    extended = list(meanings)
    number: dict[tuple[int, int], int] = {}

    def in_batch(label: int, label_of_batch: int) -> int:
        if label_of_batch < 0 or not needs[label]:
            return label
        key = label, label_of_batch
        if key not in number:
            number[key] = len(extended)
            extended.append(_with_batch(meanings[label], meanings[label_of_batch]))
        return number[key]

    changed = [
        kinds[kind[at]].changed(partial(in_batch, label_of_batch=int(of_kernel[at])))
        for at in firsts.tolist()
    ]
    return Batches(extended, changed, pair, of_kernel)


def _rank(name: str) -> int:
    # Ranges with sums per sequence rank above ranges with totals.
    if not is_batch(name):
        return _path.NO_RANK
    return 0 if is_detailed(name) else 1


def _needs_batch(meaning: Meaning) -> bool:
    if meaning.call is None or not meaning.has_arguments:
        return False
    formula = ops.find(meaning.call)
    return formula is not None and _BATCH in formula.allowed


def _with_batch(meaning: Meaning, batch: Meaning) -> Meaning:
    if meaning.call is None:
        return meaning
    args = (*meaning.call.args, Arg(_BATCH, batch.name))
    return replace(meaning, call=replace(meaning.call, args=args))

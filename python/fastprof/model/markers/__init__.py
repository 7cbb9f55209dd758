"""Parses a range's name into its meaning: arguments, module, source line, layer, torch op, or text.

Recognised forms are those of PyProf, torch's emit_nvtx and `layer:` annotations. The entire name
must match a form; otherwise the range is the user's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastprof._system.regex import regex
from fastprof.model.markers.frames import SourceLines, each_part_once
from fastprof.model.markers.kineto import (
    BACKWARD_NODE,
    BACKWARD_WORD,
    cut_sizes,
    is_torch_name,
    read_event,
    torch_meaning,
)
from fastprof.model.markers.literal import read_dict
from fastprof.model.markers.meaning import Kind, Meaning

__all__ = [
    "WAITING_FOR_GIL", "Kind", "Meaning", "SourceLines", "dict_operators", "each_part_once",
    "op_name", "read", "read_event",
]  # fmt: skip

_LAYER = "layer:"
# Ranges of nsys profile --trace=python-gil (nsys 2023.4).
WAITING_FOR_GIL = "Waiting for GIL"
_OF_GIL = frozenset({WAITING_FOR_GIL, "Holding GIL"})


def read(label: str, torch_suffix: bool) -> Meaning:
    """Parse one range name.

    Parameters
    ----------
    label : str
        The range's text without torch's `, seq = N`, `, op_id = M` and `, input_op_ids = [..]`;
        `, sizes = [..]` is kept.
    torch_suffix : bool
        Whether the range's text had one of these suffixes.

    Returns
    -------
    Meaning
        Of kind USER when the label has no known form. Never raises.

    Notes
    -----
    Under emit_nvtx, a user's `torch.profiler.record_function` range also has a torch suffix. Its
    text cannot be distinguished from an operator's, so its kind is TORCH.
    """
    meaning = read_dict(label)
    if meaning is not None:
        return meaning
    name, sizes = cut_sizes(label)
    if name.startswith(_LAYER) and not name[len(_LAYER) :].isspace() and name != _LAYER:
        return Meaning(Kind.LAYER, label, name[len(_LAYER) :])
    if torch_suffix or sizes is not None or is_torch_name(name):
        return torch_meaning(label, name, sizes)
    return Meaning(Kind.HIDDEN if label in _OF_GIL else Kind.USER, label, label)


def op_name(meaning: Meaning) -> str:
    """The operator's name as shown in dict lines.

    Parameters
    ----------
    meaning : Meaning
        Of any kind; intended for ARGUMENT and TORCH.

    Returns
    -------
    str
        For argument markers, the op. For torch ranges, the name without namespace; in backward also
        without the backward suffix: `MulBackward0` is `Mul`, `nll_loss_backward` is `nll_loss`,
        `_softmax_backward_data` is `_softmax`. For other kinds, the meaning's name.
    """
    if meaning.call is None:
        return meaning.name
    if not (meaning.backward or meaning.recompute):
        return meaning.call.op
    return BACKWARD_WORD.split(meaning.call.op, maxsplit=1)[0] or meaning.call.op


def dict_operators(chain: Sequence[Meaning]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`mod` and `op` of a dict line, as PyProf writes them for the calls around a kernel.

    Parameters
    ----------
    chain : sequence of Meaning
        Argument markers and torch ranges, outermost first.

    Returns
    -------
    mods, ops : tuples of str, of equal length
        Of the argument markers, if there are any. Else of the torch ranges that PyProf treats as
        backward (name ending in `Backward` or `_backward`), without that suffix. Else of all torch
        ranges. The mod of torch ranges is `na`.
    """
    calls = [m.call for m in chain if m.kind == Kind.ARGUMENT and m.call is not None]
    if calls:
        return tuple(call.mod for call in calls), tuple(call.op for call in calls)
    names = [m.name for m in chain if m.kind == Kind.TORCH]
    if any(m.backward for m in chain):
        # PyProf put operators inside an autograd node, which have no sequence number, first.
        names.sort(key=lambda name: (BACKWARD_NODE.search(name) is not None, name))
    cut = [BACKWARD_WORD.split(name)[0] for name in names if _OLD_BACKWARD.search(name)]
    ops = [name.removeprefix("aten::") for name in names]
    return tuple("na" for _ in cut or ops), tuple(cut or ops)


_OLD_BACKWARD = regex(r"(?:Backward|_backward)\Z")

"""The iterations of transformers' generate in a trace of torch.profiler, as ranges.

transformers opens no ranges. With recorded stacks, its loop over tokens is a function of
generation/utils.py, and each call of the model in it an nn.Module. The shapes of the first
embedding inside tell the sequences and tokens: aten::embedding of [vocabulary, features] and
[sequences, tokens]. Each such call becomes a range `generate[prefill bs=3 toks=51]` around it:
prefill inside of the function _prefill, or, in versions without, if the first call of a loop has
several tokens for each sequence. Beams are sequences, and padding is tokens, as the model computes
them. Calls whose stage is unknown become no range.

Source: _sample, _beam_search and _prefill of src/transformers/generation/utils.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._kineto import NONE
from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.model.arrays import Bools, Int64
from fastprof.readers.kineto.event_columns import KinetoFile

_FILE: Final = "transformers/generation/utils.py("
_LOOP: Final = regex(r"\): (?:_sample|_beam_search)\Z")
_PREFILL: Final = regex(r"\): _prefill\Z")
_MODULE: Final = "nn.Module: "
_EMBEDDING: Final = "aten::embedding\x1f"
_CATEGORY: Final = "user_annotation"
_FIELDS: Final = "\x1f" * 6  # of a label, which are empty


Columns = dict[str, npt.NDArray[Any]]


class _Call(NamedTuple):
    """A call of the model.

    Parameters
    ----------
    start, end : ns
    is_first : whether it is the first one of its loop
    """

    start: int
    end: int
    is_first: bool


class _Events(NamedTuple):
    """Some events of one thread, in order of start; [events].

    label : index into the labels of the file
    """

    start: Int64
    end: Int64
    label: Int64

    def within(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Start, end and label of those that lie in an interval."""
        first, last = np.searchsorted(self.start, [start, end])
        for row in range(int(first), int(last)):
            if self.end[row] <= end:
                yield int(self.start[row]), int(self.end[row]), int(self.label[row])

    def contain(self, time: int) -> bool:
        """Whether one of them, of which none are nested, is open at a time."""
        row = int(np.searchsorted(self.start, time, "right")) - 1
        return row >= 0 and time < self.end[row]


def add_iterations(file: KinetoFile) -> None:
    """Put the ranges of iterations before the ranges of the file; none without recorded stacks."""
    functions = [(i, text) for i, text in enumerate(file.labels) if _FILE in text]
    loops, prefills = (
        [i for i, text in functions if form.search(text.rsplit("\x1f", 6)[0])]
        for form in (_LOOP, _PREFILL)
    )
    if not loops:
        return
    modules, embeddings = (
        [i for i, text in enumerate(file.labels) if text.startswith(begin)]
        for begin in (_MODULE, _EMBEDDING)
    )
    table = file.tables["ranges"]
    of_loops = np.isin(table["label"], loops) & (table["start"] != NONE)
    places = zip(*(table[key][of_loops].tolist() for key in ("pid", "tid")), strict=True)
    for pid, tid in sorted(set(places)):
        here = (table["pid"] == pid) & (table["tid"] == tid) & (table["start"] != NONE)
        functions_of_thread = _Functions(
            *(_events(file, here, labels) for labels in (loops, prefills, modules, embeddings))
        )
        rows = list(_iterations(file, functions_of_thread, has_prefill=bool(prefills)))
        table = _prepend(file, pid, tid, rows)


class _Functions(NamedTuple):
    """What runs on a thread: loops over tokens, prefills, modules and embeddings."""

    loops: _Events
    prefills: _Events
    modules: _Events
    embeddings: _Events


def _events(file: KinetoFile, here: Bools, labels: list[int]) -> _Events:
    table = file.tables["ranges"]
    rows = np.flatnonzero(here & np.isin(table["label"], labels))
    rows = rows[np.argsort(table["start"][rows], kind="stable")]
    start = table["start"][rows]
    return _Events(start, start + np.maximum(table["duration"][rows], 0), table["label"][rows])


def _iterations(
    file: KinetoFile, functions: _Functions, has_prefill: bool
) -> Iterator[tuple[int, int, str]]:
    """Start, end and name of each iteration of a thread.

    has_prefill : whether the version of transformers computes prompts in a function of their own
    """
    for call in _calls(functions.loops, functions.modules):
        sizes = _sizes(file, functions.embeddings, call)
        if functions.prefills.contain(call.start) or (
            not has_prefill and call.is_first and sizes is not None and sizes[1] > 1
        ):
            stage = "prefill"
        elif (sizes is None and has_prefill) or (sizes is not None and sizes[1] == 1):
            stage = "decode"
        else:
            continue
        batch = "" if sizes is None else f" bs={sizes[0]} toks={sizes[0] * sizes[1]}"
        yield call.start, call.end, f"generate[{stage}{batch}]"


def _calls(loops: _Events, modules: _Events) -> Iterator[_Call]:
    """The outermost modules in each loop."""
    for loop_start, loop_end, _ in loops.within(*_EVER):
        until, is_first = loop_start, True
        for start, end, _ in modules.within(loop_start, loop_end):
            if start >= until:
                yield _Call(start, end, is_first)
                until, is_first = end, False


_EVER: Final = (np.iinfo(np.int64).min, np.iinfo(np.int64).max)


def _sizes(file: KinetoFile, embeddings: _Events, call: _Call) -> tuple[int, int] | None:
    """Sequences and tokens of each, by the first embedding of a call; None if not recorded."""
    for _, _, label in embeddings.within(call.start, call.end):
        try:
            dims = json.loads(file.labels[label].rsplit("\x1f", 6)[1])
            sequences, tokens = dims[1]
        except (ValueError, TypeError, IndexError):
            return None
        is_known = all(isinstance(size, int) and size > 0 for size in (sequences, tokens))
        return (sequences, tokens) if is_known else None
    return None


def _prepend(file: KinetoFile, pid: int, tid: int, rows: list[tuple[int, int, str]]) -> Columns:
    """Put ranges before those of the file: of equal times, they are the outer ones.

    Returns the ranges of the file.
    """
    if not rows:
        return file.tables["ranges"]
    if _CATEGORY not in file.categories:
        file.categories.append(_CATEGORY)
    start, end, names = zip(*rows, strict=True)
    number = {name: len(file.labels) + i for i, name in enumerate(dict.fromkeys(names))}
    file.labels += [name + _FIELDS for name in number]
    known = {
        "pid": pid, "tid": tid, "category": file.categories.index(_CATEGORY), "start": start,
        "duration": np.array(end) - np.array(start), "label": [number[name] for name in names],
    }  # fmt: skip
    table = file.tables["ranges"]
    for key, column in table.items():
        own = np.full(len(rows), -1, column.dtype)
        own[:] = known.get(key, -1)
        table[key] = np.concatenate([own, column])
    return table

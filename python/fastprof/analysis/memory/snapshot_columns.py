"""Columns of the allocations in a snapshot, from their stacks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._take import take
from fastprof.analysis.memory.blocks import Blocks
from fastprof.analysis.memory.snapshot_events import LiveEvents
from fastprof.model.columns import Column, Ints, Values
from fastprof.model.markers import SourceLines
from fastprof.model.metadata import About
from fastprof.model.snapshot import Snapshot

Whole = npt.NDArray[Any]

_PYTHON: Final = re.compile(r"(?:\.py|>):\d+ ")


class SnapshotColumns:
    """Columns of events: `trace`, `line`, `library_line`, `device`, `stream`.

    Attributes
    ----------
    about : About
        Without metadata.
    names : list of str
        The columns.
    """

    def __init__(self, snapshot: Snapshot, live: LiveEvents, lines: SourceLines) -> None:
        self.about = About("snapshot")
        self._snapshot, self._live = snapshot, live
        history, blocks = snapshot.events, snapshot.blocks
        self._stacks = Values(self._of(history.stack, blocks.stack), snapshot.stacks)
        stream = take(snapshot.segments.stream, blocks.segment)
        self._makers: dict[str, Callable[[], Column]] = {
            "trace": lambda: self._stacks.mapped(_python_frames).mapped(lines.trace),
            "line": lambda: self._stacks.mapped(_python_frames).mapped(lines.line),
            "library_line": lambda: self._stacks.mapped(_python_frames).mapped(lines.library_line),
            "device": lambda: Values(live.events.memory, live.events.names),
            "stream": lambda: Ints(self._of(history.stream, stream)),
        }
        self.names = list(self._makers)

    def __len__(self) -> int:
        return len(self._live.events)

    def column(self, name: str) -> Column:
        """A column of `names`."""
        return self._makers[name]()

    def categories(self, blocks: Blocks) -> Values:
        """[events] The category: the recorded one, else by the stack.

        The first of these that a frame shows: `optimizer state` in torch.optim and live at the end;
        `gradients` in a backward pass and live at the end; `parameters` in a constructor of a
        module or a move of its parameters; `inputs` in torch.utils.data; `activations` in the
        forward pass of a module. `temporary` in the optimizer or a backward pass and freed;
        `unknown` otherwise.
        """
        history, state = self._snapshot.events, self._snapshot.blocks
        names = [*history.category.values, *state.category.values]
        other = np.where(
            state.category.ids < 0,
            np.int32(-1),
            state.category.ids + np.int32(len(history.category.values)),
        )
        recorded = Values(self._of(history.category.ids, other), names)
        by_stack = self._stacks.mapped(_category)
        of_stack = by_stack.array()
        is_live = np.zeros(len(self), bool)
        own = blocks.is_recorded
        is_live[blocks.begin[own]] = blocks.is_live_at_end[own]
        found = [
            written or _final(guess, live)
            for written, guess, live in zip(
                recorded.array().tolist(), of_stack.tolist(), is_live.tolist(), strict=True
            )
        ]
        ids = {name: i for i, name in enumerate(dict.fromkeys(found))}
        return Values(np.array([ids[each] for each in found], np.int32), list(ids))

    def _of(self, of_events: Whole, of_blocks: Whole) -> Whole:
        """[events] A value of each event, or of the block that is older than the history."""
        row = self._live.events.row
        older = row < 0
        found = np.full(len(row), -1, of_events.dtype)
        found[older] = of_blocks[-1 - row[older]]
        found[~older] = of_events[row[~older]]
        return found


def _python_frames(stack: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(frame for frame in stack if _PYTHON.search(frame))


# In order: the first pattern that a frame of the stack contains.
_CATEGORIES: Final = (
    ("optimizer state", re.compile(r"(?:^|/)torch/optim/")),
    (
        "gradients",
        re.compile(
            r"torch/(?:_tensor|autograd/__init__)\.py:\d+ backward|torch::autograd::Engine"
            r"|Backward\d*::apply|AccumulateGrad"
        ),
    ),
    (
        "parameters",
        re.compile(
            r"torch/nn/(?:modules/\w+|parameter)\.py:\d+ (?:__init__|reset_parameters|_apply)"
        ),
    ),
    ("inputs", re.compile(r"torch/utils/data/")),
    ("activations", re.compile(r"torch/nn/modules/module\.py:\d+ _(?:wrapped_)?call_impl")),
)
_OF_LIVE: Final = frozenset({"optimizer state", "gradients"})


def _category(stack: tuple[str, ...]) -> str | None:
    text = "\n".join(frame.replace("\\", "/") for frame in stack)
    return next((name for name, pattern in _CATEGORIES if pattern.search(text)), None)


def _final(guess: str | None, is_live: bool) -> str:
    if guess in _OF_LIVE and not is_live:
        return "temporary"
    return guess or "unknown"

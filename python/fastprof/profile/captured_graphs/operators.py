"""Operators around captured calls, also of a capture file: their work, kernels, sizes in names."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core import _path
from fastprof._core._take import take
from fastprof._system.regex import regex
from fastprof.errors import BadInputError
from fastprof.model.arrays import Int32, Int64
from fastprof.model.markers import Kind
from fastprof.model.trace import NEVER, Appended, Captured, Launches, Ranges, Recording
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.captured_graphs.choose import Around

_HELPERS = "copy elementwise reduction memset"
# Names of the innermost operator, and the kinds of kernels that it may launch. Kernels of unknown
# kind are always allowed.
_LAUNCHES = (
    (r"(?:_scaled_|_int_|add|b|badd|badb)?mm(?:_out)?|addmv|mv|linear|matmul", "gemm convolution"),
    (r".*convolution.*", "convolution gemm"),
    (r".*attention.*", "attention gemm softmax random index"),
    (r".*softmax.*", "softmax"),
    (r".*norm.*", "normalisation random"),
    (r"add_?|sub_?|mul_?|div_?|neg|silu_?|gelu|relu_?|sigmoid|tanh|pow|exp|rsqrt|sqrt", ""),
    (r"copy_|_to_copy|clone|fill_|zero_|cat|arange", ""),
    (r"sum|mean|amax|argmax|cumsum", "sort"),
    (r"index.*|embedding|gather|scatter.*", "index sort"),
)  # fmt: skip
_MAY_LAUNCH = [(regex(names), {*kinds.split(), *_HELPERS.split()}) for names, kinds in _LAUNCHES]
_UNKNOWN_KINDS = {"other", "triton-fused", "memset", "memcpy"}
_NUMBER = regex(r"\d+")
# Range names of vLLM and SGLang; the size is the sum of the numbers.
_SIZE = regex(
    r"(?:capture|execute)_(\d{1,9})_"
    r"|execute_context_\d+\((\d{1,9})\)_generation_\d+\((\d{1,9})\)"
    r"|step\[DECODE\b[^\]]*?\bbs=(\d{1,9})|step\[EXTEND\b[^\]]*?\btoks=(\d{1,9})"
)
_SIZE_OF_FILE = regex(r"bs_(\d{1,9})_rank\d")


class Operators:
    """The operators around frames, as ids."""

    def __init__(self, attribution: Attribution) -> None:
        self._found = attribution
        own = [i if m.kind in (Kind.TORCH, Kind.ARGUMENT) else -1
               for i, m in enumerate(attribution.meanings)]  # fmt: skip
        label = np.array([*own, -1], np.int32)[attribution.node_label]
        self._label_of_node = _path.innermost(attribution.node_parent, label)
        ids: dict[Hashable, int] = {}
        self._work_of_label = np.array(
            [ids.setdefault(m.call or m.name, len(ids)) for m in attribution.meanings] or [-1],
            np.int32,
        )
        self._fits: dict[tuple[int, str], bool | None] = {}
        self._around = {-1: Around()}

    def label(self, frame: Int32) -> Int32:
        """The label of the innermost operator around each frame, -1 for none."""
        return take(self._label_of_node, take(self._found.node_of_frame, frame))

    def work(self, label: Int32) -> Int32:
        """An id for the operator and arguments of each label."""
        return take(self._work_of_label, label)

    def disagree(self, label: Int32, name: npt.NDArray[np.int32], names: list[str | None]) -> int:
        """The number of kernels whose kind the operator cannot launch.

        label, name : int32 [kernels], label of the operator, index of the kernel name in `names`
        """
        pairs, counts = np.unique(np.stack([label, name]), axis=1, return_counts=True)
        return sum(
            n
            for one, other, n in zip(*pairs.tolist(), counts.tolist(), strict=True)
            if one >= 0 and other >= 0 and self._fit(one, names[other] or "") is False
        )

    def _fit(self, label: int, name: str) -> bool | None:
        if (label, name) not in self._fits:
            self._fits[label, name] = self._compare(label, name)
        return self._fits[label, name]

    def _compare(self, label: int, name: str) -> bool | None:
        call = self._found.meanings[label].call
        if call is None:
            return None
        if call.op.startswith("triton_"):  # the kernel's own name
            return call.op == name
        kind = ops.classify(name).kind
        if kind in _UNKNOWN_KINDS:
            return None
        return next(
            (kind in kinds for pattern, kinds in _MAY_LAUNCH if pattern.fullmatch(call.op)), None
        )

    def around_capture(self, frame: int, file: str | None) -> Around:
        """Numbers in the ranges around a capture; otherwise the size in SGLang's file name."""
        around = self.around(frame)
        size = _SIZE_OF_FILE.match(os.path.basename(file)) if file else None
        if size is None or around.size is not None:
            return around
        return Around(around.numbers, int(size[1]))

    def around(self, frame: int) -> Around:
        """Numbers in the names of the user's ranges around a frame."""
        node = int(self._found.node_of_frame[frame]) if frame >= 0 else -1
        path = []
        while node not in self._around:
            path.append(node)
            node = int(self._found.node_parent[node])
        around = self._around[node]
        for node in reversed(path):
            meaning = self._found.meanings[self._found.node_label[node]]
            if meaning.kind == Kind.USER:
                size = _SIZE.match(meaning.name)
                around = Around(
                    around.numbers | frozenset(_NUMBER.findall(meaning.name)),
                    sum(int(group or 0) for group in size.groups()) if size else around.size,
                )
            self._around[node] = around
        return around


Text = TypeVar("Text", str, str | None)


def append_capture(recording: Recording, capture: Recording) -> None:
    """Append ranges, API calls, threads and captured graphs of `capture` to `recording`, in place.

    They get later times than all of `recording`, and processes of their own. Kernels are not
    appended.

    Raises
    ------
    BadInputError
        The combined time span does not fit into 64 bits.
    """
    trace = recording
    own, other = trace.ranges, capture.ranges
    shift = _shift(trace, capture)
    label = _merged(trace.labels, capture.labels)
    name = _merged(trace.strings, capture.strings)
    n_ranges, n_launches = len(own), len(trace.launches)
    n_threads, n_processes = len(trace.threads), len(trace.processes)
    trace.ranges = Ranges(
        start=np.concatenate([own.start, other.start + shift]),
        end=np.concatenate([own.end, _later(other.end, shift)]),
        thread=np.concatenate([own.thread, other.thread + np.int32(n_threads)]),
        label=np.concatenate([own.label, label[other.label]]),
        seq=np.concatenate([own.seq, other.seq]),
        op_id=np.concatenate([own.op_id, other.op_id]),
    )
    launches = capture.launches
    trace.launches = Launches(
        start=np.concatenate([trace.launches.start, launches.start + shift]),
        thread=np.concatenate([trace.launches.thread, _moved(launches.thread, n_threads)]),
        name=np.concatenate([trace.launches.name, name[launches.name]]),
    )
    trace.threads = np.concatenate([trace.threads, capture.threads])
    trace.process_of_thread = np.concatenate(
        [trace.process_of_thread, _moved(capture.process_of_thread, n_processes)]
    )
    trace.processes = np.concatenate([trace.processes, capture.processes])
    if trace.recorded_forward is not None or capture.recorded_forward is not None:
        trace.recorded_forward = np.concatenate(
            [
                _recorded_forward(trace, n_ranges),
                _moved(_recorded_forward(capture, len(other)), n_ranges),
            ]
        )
    if capture.captured is not None:
        trace.captured = _concatenated(
            trace.captured, capture.captured, n_launches, name, capture.name
        )
    n_own = n_ranges - trace.appended.ranges
    trace.appended = Appended(
        start=trace.ranges.start[n_own:].copy(),  # the times of other ranges are released
        end=trace.ranges.end[n_own:].copy(),
        thread=trace.ranges.thread[n_own:].copy(),
        threads=trace.appended.threads + len(capture.threads),
        processes=trace.appended.processes + len(capture.processes),
    )


def _shift(recording: Recording, capture: Recording) -> int:
    """The offset in ns that moves the times of `capture` after those of `recording`."""
    tables = [
        (recording.ranges.start, capture.ranges.start),
        (recording.launches.start, capture.launches.start),
    ]
    last = max((int(own[-1]) for own, _ in tables if len(own)), default=0)
    first = min((int(other[0]) for _, other in tables if len(other)), default=0)
    end = max((int(other[-1]) for _, other in tables if len(other)), default=0)
    shift = last + 1 - first
    if not -NEVER < shift < NEVER or end + shift >= NEVER:
        raise BadInputError(
            f"{capture.name}: expected times that fit into 64 bits of ns after those of "
            f"{recording.name}, found {first} to {end}; one of the files is "
            "damaged, record it again"
        )
    return shift


def _later(end: Int64, shift: int) -> Int64:
    """Range ends plus `shift`; NEVER stays NEVER."""
    return np.where(end >= NEVER - max(shift, 0), NEVER, end + shift)


def _merged(texts: list[Text], others: Iterable[Text]) -> Int32:
    """The index of each of `others` in `texts`, to which missing ones are added; -1 at the end."""
    places = {text: place for place, text in enumerate(texts)}
    results: list[int] = []
    for text in others:
        if text not in places:
            places[text] = len(texts)
            texts.append(text)
        results.append(places[text])
    return np.array([*results, -1], np.int32)


def _moved(index: Int32, by: int) -> Int32:
    moved: Int32 = np.where(index >= 0, index + np.int32(by), np.int32(-1))
    return moved


def _recorded_forward(recording: Recording, n_ranges: int) -> Int32:
    forward = recording.recorded_forward
    return np.full(n_ranges, -1, np.int32) if forward is None else forward


def _concatenated(
    own: Captured | None, other: Captured, n_launches: int, name: Int32, file: str
) -> Captured:
    """The captures in `own`, then those of the file named `file`."""
    first = 0 if own is None else int(own.graph.max(initial=-1)) + 1
    moved = Captured(
        launch=other.launch + np.int32(n_launches),
        graph=other.graph + np.int32(first),
        name=name[other.name],
        grid=other.grid,
        block=other.block,
        kind=other.kind,
        files=[file] * (int(other.graph.max(initial=-1)) + 1),
    )
    if own is None:
        return moved
    files = own.files + moved.files
    columns = {
        key: np.concatenate([column, getattr(moved, key)])
        for key, column in vars(own).items()
        if key != "files"
    }
    return Captured(**columns, files=files)

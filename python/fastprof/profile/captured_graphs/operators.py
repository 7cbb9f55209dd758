"""Operators around captured calls: their work, the kernels they can launch, sizes in names."""

from __future__ import annotations

import os
from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core import _path
from fastprof._core._take import take
from fastprof._system.regex import regex
from fastprof.model.arrays import Int32
from fastprof.model.markers import Kind
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

    def __init__(self, found: Attribution) -> None:
        self._found = found
        own = [i if m.kind in (Kind.TORCH, Kind.ARGUMENT) else -1
               for i, m in enumerate(found.meanings)]  # fmt: skip
        label = np.array([*own, -1], np.int32)[found.node_label]
        self._label_of_node = _path.innermost(found.node_parent, label)
        ids: dict[Hashable, int] = {}
        self._work_of_label = np.array(
            [ids.setdefault(m.call or m.name, len(ids)) for m in found.meanings] or [-1], np.int32
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
                    sum(int(each or 0) for each in size.groups()) if size else around.size,
                )
            self._around[node] = around
        return around

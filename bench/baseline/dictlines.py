"""Capture -> one Python dict literal per kernel, as `fastprof parse` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.baseline.capture import Capture
from bench.baseline.frames import Frame
from bench.baseline.links import numbers_of
from bench.baseline.meanings import TORCH
from bench.baseline.nodes import Node
from bench.baseline.tables import LOW_24_BITS, Kernel

LEFT_OUT = ("void ", "at::", "cuda::", "native::")
ANONYMOUS = ("(anonymous namespace)::", "<unnamed>::")


def write_dict_lines(capture: Capture, path: Path) -> None:
    """Write the lines to a file."""
    with path.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        file.writelines(dict_lines(capture))


def dict_lines(capture: Capture) -> Iterator[str]:
    """The lines with their line ends. Text that depends only on the call path is built once."""
    names: dict[object, tuple[str, str]] = {}
    last: Frame | None = None
    numbers, markers, node, direction = (None, []), "[]", capture.root, None
    subs = Subs()
    for kernel, launch, frame, by_engine in zip(
        capture.kernels, capture.launches, capture.frames, capture.by_engine, strict=True
    ):
        if frame is not last:
            last = frame
            node = capture.root if frame is None else frame.node.bare
            direction = None if frame is None else frame.node.direction
            numbers = (None, []) if frame is None else numbers_of(frame)
            markers = "[]" if frame is None else seq_markers(frame)
        seq, others = numbers
        if kernel.name not in names:
            names[kernel.name] = _names(capture.long_name(kernel))
        short, long = names[kernel.name]
        around, beside = node.dict_text
        yield (
            f"{{'kShortName': {short}, 'kDuration': {duration(kernel)}, {around}{markers}, "
            f"'seqId': {'[]' if seq is None else [seq]}, "
            f"'subSeqId': {subs.next(kernel.process, seq, node)}, "
            f"'altSeqId': {others}, 'dir': {('bprop' if by_engine else direction)!r}, {beside}"
            f"'tid': {None if launch is None else launch.thread & LOW_24_BITS}, "
            f"'device': {kernel.device}, 'stream': {kernel.stream}, "
            f"'grid': {size(*kernel[7:10])}, 'block': {size(*kernel[10:13])}, "
            f"'kLongName': {long}}}\n"
        )


def duration(kernel: Kernel) -> int | None:
    """ns; None if the end is before the start."""
    ns = kernel.end - kernel.start
    return ns if 0 <= ns < 1 << 63 else None


def size(x: int | None, y: int | None, z: int | None) -> tuple[int, int, int] | None:
    """Grid or block; None if a side is unknown."""
    return None if None in (x, y, z) or min(x, y, z) < 0 else (x, y, z)


class Subs:
    """The number of directly preceding kernels of a process with the same number and operators."""

    def __init__(self) -> None:
        self._last: dict[int | None, tuple[int, object, int]] = {}

    def next(self, process: int | None, seq: int | None, node: Node) -> int:
        if seq is None:
            return 0
        before = self._last.get(process)
        again = before is not None and before[0] == seq and before[1] == node.operators
        sub = before[2] + 1 if again else 0
        self._last[process] = seq, node.operators, sub
        return sub


def seq_markers(frame: Frame) -> str:
    """torch's ranges around a kernel, each once, by number and name.

    Of two ranges without op_id and sizes that have the same number, where one name contains the
    other, only the first counts: PyTorch 1 pushes `layer_norm, seq = 7` around
    `native_layer_norm, seq = 7`.
    """
    result = []
    around: Frame | None = frame
    while around is not None:
        meaning = around.node.meaning
        if meaning.kind == TORCH:
            seq = -1 if around.seq is None else around.seq
            op_id = -1 if around.op_id is None else around.op_id
            result.append((seq, meaning.quoted[0], op_id, meaning.quoted[1]))
        around = around.parent
    result.sort()
    texts = []
    for before, one in zip([None, *result], result, strict=False):
        if before is not None and _repeats(before, one):
            continue
        seq, head, op_id, tail = one
        if seq >= 0:
            head += f", seq = {seq}"
        if op_id >= 0:
            head += f", op_id = {op_id}"
        texts.append(f"'{head}{tail}'")
    return f"[{', '.join(texts)}]"


def _repeats(before: tuple[int, str, int, str], one: tuple[int, str, int, str]) -> bool:
    if before == one:
        return True
    (seq, head, op_id, tail), (number, name, other_id, other_tail) = before, one
    if number < 0 or seq != number or op_id >= 0 or other_id >= 0 or tail or other_tail:
        return False
    return name in head or head in name


def _names(name: str | None) -> tuple[str, str]:
    """Literals of the short name and the long one."""
    return repr(name if name is None else short_name(name)), repr(name)


def short_name(name: str) -> str:
    """The name before `<` and `(`, without `void ` and the namespaces that every kernel has."""
    head = name
    for word in ANONYMOUS:
        head = head.replace(word, "")
    head = head.split("<", 1)[0].split("(", 1)[0]
    for word in LEFT_OUT:
        head = head.replace(word, "")
    return (head or name).replace(" ", "_")

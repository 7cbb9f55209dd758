"""Backward frames -> the forward frames that they belong to, by autograd's sequence numbers."""

from __future__ import annotations

from bench.baseline.frames import Frame
from bench.baseline.makers import Makers
from bench.baseline.meanings import TORCH
from bench.baseline.tables import PROCESS_SHIFT


def link(frames: list[Frame]) -> None:
    """Set `forward` and `asks` of the backward calls among frames in order of start.

    The forward call of number N is the latest-starting one with N before it, in its process or
    inside its recomputation, unless names indicate another (makers). PyTorch 1 gives 0 to ranges
    without a number: 0 counts only on threads whose forward ranges also have larger numbers.
    """
    numbered = [(i, frame) for i, frame in enumerate(frames) if frame.seq is not None]
    counting = {frame.thread for _, frame in numbered if frame.seq and frame.node.carries}
    scopes: dict[object, int] = {}
    makers = Makers(
        frames,
        [
            (scopes.setdefault(scope_of(frame), len(scopes)), frame.seq or 0, i)
            for i, frame in numbered
            if frame.node.carries and (frame.seq or frame.thread in counting)
        ],
    )
    for i, frame in numbered:
        if frame.node.asks:
            frame.asks = True
            frame.forward = makers.maker(i, scopes.get(scope_of(frame), -1))


def scope_of(frame: Frame) -> object:
    """The recomputation around a frame, or its process."""
    if frame.node.recomputes:
        around: Frame | None = frame
        while around is not None:
            if around.node.meaning is not None and around.node.meaning.recompute:
                return around.original
            around = around.parent
    return frame.thread >> PROCESS_SHIFT


def backward_call(frame: Frame) -> Frame | None:
    """The backward call that contains a frame: the outermost of a run with one number."""
    call = None
    while frame is not None:
        if frame.original.asks:
            if call is not None and call.seq != frame.seq:
                return call
            call = frame
        frame = frame.parent
    return call


def meaning_of(frame: Frame) -> Frame:
    """The forward frame that a backward frame belongs to, else the frame itself."""
    call = backward_call(frame) if frame.node.is_backward else None
    forward = call.original.forward if call is not None else None
    return frame if forward is None else forward


def numbers_of(frame: Frame) -> tuple[int | None, list[int]]:
    """The linking number of a chain, and its other numbers, sorted.

    The innermost number links; in a backward pass, only numbers of backward calls do. Any other
    number takes precedence over 0, which is then left out.
    """
    inside, linking, numbers = frame.node.in_backward_range, None, set()
    around: Frame | None = frame
    while around is not None:
        seq = around.seq
        if seq is not None and around.node.meaning.kind == TORCH:
            numbers.add(seq)
            if (not inside or around.original.asks) and not linking and (seq or linking is None):
                linking = seq
        around = around.parent
    if any(numbers):
        numbers.discard(0)
    numbers.discard(linking)
    return linking, sorted(numbers)

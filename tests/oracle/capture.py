"""A capture as plain objects: ranges with their parents, kernels with their launches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Thread = tuple[Any, Any]  # process, thread


@dataclass(eq=False)
class Range:
    """A named range of a thread. Times are ns. Missing values are None.

    Parameters
    ----------
    kind : "op" (of PyTorch), "marker" (of PyProf), "user" or "frame" (of Python)
    dims : sizes of each argument, an empty list for non-tensors
    concrete : values of non-tensor arguments, as text
    on_forward_thread : torch's number of the forward thread, 0 for a forward operator
    told_forward : the forward operator at the start of the file's flow
    """

    name: str
    start: int
    end: int
    thread: Thread
    kind: str
    seq: int | None = None
    dims: list[Any] | None = None
    types: list[str] | None = None
    concrete: list[str] | None = None
    forward_thread: int | None = None
    parent: Range | None = None
    told_forward: Range | None = None
    children: list[Range] = field(default_factory=list)

    def chain(self) -> list[Range]:
        """The range and its ancestors, innermost first."""
        result, each = [], self
        while each is not None:
            result.append(each)
            each = each.parent
        return result


@dataclass(eq=False)
class Kernel:
    """A kernel and the innermost range around its launch.

    waiting : of work of the autograd engine, the innermost range that the thread which called
        backward had open at the launch
    """

    start: int
    duration: int
    name: str
    device: Any
    correlation: int
    thread: Thread | None
    launched: int | None
    range: Range | None
    waiting: Range | None = None


@dataclass
class Capture:
    ranges: list[Range]
    kernels: list[Kernel]
    autograd_threads: set[Thread]

"""What the ranks of a simulated run execute: operations of a step, and process groups.

All ranks execute the same list of operations; an operation can be of some ranks only. The list is a
valid order for every rank, so one pass over it with arrays over ranks computes all times.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Ranks: TypeAlias = npt.NDArray[np.int64]

ROWS: Final = -1  # in the shapes of an operator: the rows, which uneven work multiplies
COMPUTE_STREAM: Final = 7
HOST_NS: Final = 8_000  # host time of an operator that launches a kernel
FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"

BYTES: Final = {"bfloat16": 2, "float32": 4}


@dataclass(frozen=True, eq=False)
class Groups:
    """Process groups of one kind, which work side by side.

    Attributes
    ----------
    key : str
        What operations refer to, such as `tp`.
    description : str
        As torch records it, such as `mesh_tp`; `default_pg` for the group of all ranks.
    ranks : int64 [groups, size]
        The members of each. A rank is in one group at most, and need not be in any.
    """

    key: str
    description: str
    ranks: Ranks

    @property
    def size(self) -> int:
        """Members of a group."""
        return int(self.ranks.shape[1])


@dataclass(frozen=True, eq=False, kw_only=True)
class Operation:
    """Something that the host thread of a rank does.

    Attributes
    ----------
    ranks : int64 [members] or None
        The ranks that execute it; None: all.
    phase : str
        `forward`, `backward` (on the thread of autograd), `optimizer`, or empty.
    fault : int
        Place of the fault that adds it, so it takes no random numbers of the run without the fault;
        -1: part of the program.
    """

    ranks: Ranks | None = None
    phase: str = ""
    fault: int = -1

    @property
    def at(self) -> Any:
        """Index of the ranks that execute it."""
        return slice(None) if self.ranks is None else self.ranks


@dataclass(frozen=True, eq=False, kw_only=True)
class Python(Operation):
    """Python code without an operator, ns."""

    ns: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Load(Operation):
    """The fetch of a batch from a DataLoader, ns."""

    ns: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Compute(Operation):
    """An operator that launches a kernel on the compute stream.

    Attributes
    ----------
    op : str
        The operator, such as `aten::addmm`.
    ns : int
        Time of the kernel for `rows` rows.
    kernel : str
        Name of the kernel.
    layer : str
        The modules around it, `Net_0/Block_1/Linear_2`; empty outside of modules.
    rows : int
        Rows of its input: the value of ROWS in `dims`.
    dims : tuple
        Shapes of its arguments; () for arguments that are no tensors.
    types : tuple of str
        Types of its arguments, as torch.profiler writes them.
    node : int
        Number of the autograd node of the step; -1: none.
    backward : str
        Name of the autograd node that executes it in the backward pass.
    """

    op: str
    ns: int
    kernel: str
    layer: str = ""
    rows: int = 1
    dims: tuple[tuple[int, ...], ...] = ()
    types: tuple[str, ...] = ()
    node: int = -1
    backward: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Collective(Operation):
    """A collective of all groups of one kind, each by itself.

    Attributes
    ----------
    groups : str
        Key of the groups.
    kind : str
        all_reduce, all_gather, reduce_scatter, all_to_all or broadcast.
    elements : int
        Elements of the complete array: the output of an all-gather, else the input.
    dtype : str
        bfloat16 or float32.
    transfer : int
        ns from the arrival of the last rank to the end.
    key : str
        A later `Wait` refers to it; empty: the compute stream waits at once.
    stream : str
        Name of the stream that it shares with others; empty: the one of its groups; `compute`: the
        compute stream.
    layer : str
        The modules around it.
    """

    groups: str
    kind: str
    elements: int
    dtype: str
    transfer: int
    key: str = ""
    stream: str = ""
    layer: str = ""

    @property
    def bytes(self) -> int:
        """Size of the complete array."""
        return self.elements * BYTES[self.dtype]


@dataclass(frozen=True, eq=False, kw_only=True)
class Wait(Operation):
    """The compute stream waits for the last communication with this key."""

    key: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Send(Operation):
    """Each rank of `ranks` sends to the rank at the same place of the matching `Receive`.

    Nothing on the sender waits for the end. `key` pairs a send with its receive.
    """

    key: str
    groups: str
    elements: int
    dtype: str
    layer: str = ""
    targets: Ranks = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def bytes(self) -> int:
        """Size of the message."""
        return self.elements * BYTES[self.dtype]


@dataclass(frozen=True, eq=False, kw_only=True)
class Receive(Operation):
    """Each rank of `ranks` receives what the matching `Send` sends; its compute stream waits.

    transfer : ns from the arrival of the later of both to the end
    """

    key: str
    groups: str
    elements: int
    dtype: str
    transfer: int
    layer: str = ""
    sources: Ranks = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def bytes(self) -> int:
        """Size of the message."""
        return self.elements * BYTES[self.dtype]


@dataclass(frozen=True, eq=False, kw_only=True)
class Synchronise(Operation):
    """The host waits for the compute stream, as `loss.item()` does."""


Communication: TypeAlias = Collective | Send | Receive


@dataclass(frozen=True, eq=False)
class Program:
    """What each rank executes in every step.

    Attributes
    ----------
    name : str
    n_ranks : int
    groups : dict of str to Groups
        By key.
    step : list of Operation
    """

    name: str
    n_ranks: int
    groups: dict[str, Groups]
    step: list[Operation]

    def group_names(self) -> dict[str, list[str]]:
        """The name of each group, by key of its kind, as torch numbers them: all ranks is `0`."""
        names: dict[str, list[str]] = {}
        n = 1
        for key, groups in self.groups.items():
            if groups.description == "default_pg":
                names[key] = ["0"]
                continue
            names[key] = [str(n + i) for i in range(len(groups.ranks))]
            n += len(groups.ranks)
        return names

    def with_step(self, step: list[Operation]) -> Program:
        """The same ranks and groups with other operations."""
        return replace(self, step=step)


def world(n_ranks: int) -> Groups:
    """The group of all ranks."""
    return Groups("world", "default_pg", np.arange(n_ranks)[None])


def transfer_ns(kind: str, n_bytes: int, size: int, bandwidth: float = 200e9) -> int:
    """ns of a collective when all have arrived.

    Parameters
    ----------
    n_bytes : int
        Size of the complete array.
    size : int
        Ranks of the group.
    bandwidth : float
        Bytes per second of each rank's link.
    """
    share = (size - 1) / size
    factor = {"all_reduce": 2 * share, "broadcast": 1.0, "send_recv": 1.0}.get(kind, share)
    return 12_000 + round(factor * n_bytes / bandwidth * 1e9)

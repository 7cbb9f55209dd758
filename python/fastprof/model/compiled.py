"""What torch.compile's Inductor records about the code that it generates: plain types.

A compiled graph calls kernels in a fixed order: generated ones (`triton_poi_fused_add_0`), and
operators of torch (`aten::addmm`). A kernel computes nodes of the graph; a node is an operator with
its tensors, from a line of the program.
"""

from __future__ import annotations

from fastprof._system.classes import dataclass
from fastprof.model.call import Call


@dataclass(frozen=True)
class Node:
    """A node of a compiled graph.

    Parameters
    ----------
    call : the ATen operator with its arguments; its `result` is the tensor that it returns, None
        for several
    op : the operator of the program that it is part of (`gelu` for `mul`), "" if unknown
    frames : the stack of the program below the compiled function, `FILE:LINE`, outermost first
    layers : the modules around it, outermost first; empty if not recorded
    """

    call: Call
    op: str = ""
    frames: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()


@dataclass(frozen=True)
class GraphKernel:
    """A call of a kernel in a compiled graph.

    Parameters
    ----------
    name : of a generated kernel, or `aten::addmm` of an operator
    handle : number of the call, -1 if not recorded
    nodes : names of the nodes that it computes
    stacks : the stacks of the program that its nodes are from; see `Node.frames`
    """

    name: str
    handle: int = -1
    nodes: tuple[str, ...] = ()
    stacks: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class CompiledGraph:
    """A graph that Inductor compiled.

    Parameters
    ----------
    key : Inductor's name of the graph, which a profiler records around each call of it; "" if
        unknown
    place : where it is described: a file, and the compile id `0/1` where recorded
    kernels : in the order of calls
    nodes : by name
    """

    key: str
    place: str
    kernels: tuple[GraphKernel, ...]
    nodes: dict[str, Node]


@dataclass(frozen=True)
class Recompilation:
    """A compilation of a function that was compiled before.

    Parameters
    ----------
    compile_id : `0/1`: frame and number of the compilation
    reasons : the guards that failed, as torch writes them, each after the compilation that it
        guards: `0/0: tensor 'x' size mismatch at index 0. expected 32, actual 33`
    """

    compile_id: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class GraphBreak:
    """A place where Dynamo ends a graph.

    Parameters
    ----------
    compile_id : `0/0`, "" if unknown
    reason : as torch writes it, the first line
    line : `FILE:LINE` of the program, "" if unknown
    """

    compile_id: str
    reason: str
    line: str


@dataclass(frozen=True)
class Compiled:
    """What artefacts of torch.compile tell about a program; the parts may be empty."""

    graphs: tuple[CompiledGraph, ...] = ()
    recompilations: tuple[Recompilation, ...] = ()
    breaks: tuple[GraphBreak, ...] = ()

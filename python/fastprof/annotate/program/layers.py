"""Layer ranges of all modules of the program, and the annotation of torch, which is undone."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import chain, starmap
from typing import Any

from torch.fx import GraphModule
from torch.jit import ScriptModule
from torch.nn import Module, Parameter

from fastprof._core import _hooks
from fastprof.annotate import session
from fastprof.annotate.graphs import GraphLayers
from fastprof.annotate.layers import Layers, annotate_layers, layer_names


def annotate_all(trained: Iterable[Parameter], called: Iterable[Module]) -> list[Layers]:
    """Give every module of the program a layer range.

    The name is the qualified name in the outermost module that contains it. If several outermost
    modules do the work, the name begins with the class of the outermost one: `Generator.main.0`.
    So do names in modules that do none of it, such as losses.

    Parameters
    ----------
    trained : the parameters that optimizers update
    called : modules that the program is known to call

    Returns
    -------
    list of Layers
        Their `remove` removes the ranges.
    """
    return [annotate_layers(root, name) for root, name in _names_of_roots(trained, called)]


def annotate_graphs() -> GraphLayers:
    """Let captures of CUDA graphs annotate the nodes of all modules, by the same names."""
    return GraphLayers(lambda: chain.from_iterable(starmap(layer_names, _names_of_roots((), ()))))


def _names_of_roots(
    trained: Iterable[Parameter], called: Iterable[Module]
) -> list[tuple[Module, str]]:
    """The outermost modules of the program and their names; "" for the only one that works."""
    roots = _roots(called)
    working = _working(roots, trained, called)
    taken: Counter[str] = Counter()
    result = []
    for root in roots:
        name = ""
        if working != [root] or not any(True for _ in root.children()):
            name = _class_name(root)
            taken[name] += 1
            name += f"-{taken[name]}" if taken[name] > 1 else ""
        result.append((root, name))
    return result


def _roots(called: Iterable[Module]) -> list[Module]:
    """The modules that no other module contains, without graphs that compilers keep."""
    modules = {
        id(get_object): get_object for get_object in gc.get_objects() if _is_module(get_object)
    }
    modules |= {id(module): module for module in called}
    inner = {id(child) for module in modules.values() for child in module.children()}
    wanted = {id(module) for module in called}
    return [
        module
        for key, module in modules.items()
        if key not in inner and (key in wanted or not isinstance(module, GraphModule))
    ]


def _is_module(each: object) -> bool:
    # type(), since isinstance asks proxies for their __class__, which may run code.
    return issubclass(type(each), Module) and not issubclass(type(each), ScriptModule)


def _working(
    roots: list[Module], trained: Iterable[Parameter], called: Iterable[Module]
) -> list[Module]:
    """The outermost modules that are trained, else that contain a called one or parameters."""
    parameters = {id(parameter) for parameter in trained}
    results = [root for root in roots if any(id(p) in parameters for p in root.parameters())]
    if results:
        return results
    wanted = {id(module) for module in called}
    if not wanted:
        return [root for root in roots if any(True for _ in root.parameters())]
    return [root for root in roots if any(id(module) in wanted for module in root.modules())]


def _class_name(module: Module) -> str:
    inner = getattr(module, "_orig_mod", None) or module
    return type(inner).__name__


class LayerAnnotation:
    """`fastprof.init` on behalf of the user. Its ranges are off, except in recordings.

    Parameters
    ----------
    functions : also record function names, see `fastprof.init`
    """

    def __init__(self, functions: bool) -> None:
        self._functions, self._is_on = functions, False
        self._uses = session.uses()

    def apply(self) -> None:
        """Annotate torch, unless the program has done so."""
        if not session.is_on():
            session.init(self._functions)
            _hooks.annotate(False)
            self._uses, self._is_on = session.uses(), True

    def undo(self) -> None:
        """Restore torch, unless the program uses the annotation too, or has compiled its code.

        torch.compile would compile it again, since functions that it saw have changed.
        """
        if self._is_on and self._uses == session.uses() and not _has_compiled():
            session.uninit()
            self._is_on = False


def _has_compiled() -> bool:
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and bool(dynamo.counters["frames"])

"""Layer ranges of all modules of the program, by their qualified names."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable

from torch.fx import GraphModule
from torch.jit import ScriptModule
from torch.nn import Module, Parameter

from fastprof.annotate.layers import Layers, annotate_layers


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
    roots = _roots(called)
    working = _working(roots, trained, called)
    taken: Counter[str] = Counter()
    found = []
    for each in roots:
        name = ""
        if working != [each] or not any(True for _ in each.children()):
            name = _class_name(each)
            taken[name] += 1
            name += f"-{taken[name]}" if taken[name] > 1 else ""
        found.append(annotate_layers(each, name))
    return found


def _roots(called: Iterable[Module]) -> list[Module]:
    """The modules that no other module contains, without graphs that compilers keep."""
    modules = {id(each): each for each in gc.get_objects() if _is_module(each)}
    modules |= {id(each): each for each in called}
    inner = {id(child) for each in modules.values() for child in each.children()}
    wanted = {id(each) for each in called}
    return [
        each
        for key, each in modules.items()
        if key not in inner and (key in wanted or not isinstance(each, GraphModule))
    ]


def _is_module(each: object) -> bool:
    # type(), since isinstance asks proxies for their __class__, which may run code.
    return issubclass(type(each), Module) and not issubclass(type(each), ScriptModule)


def _working(
    roots: list[Module], trained: Iterable[Parameter], called: Iterable[Module]
) -> list[Module]:
    """The outermost modules that are trained, else that contain a called one or parameters."""
    parameters = {id(each) for each in trained}
    found = [root for root in roots if any(id(p) in parameters for p in root.parameters())]
    if found:
        return found
    wanted = {id(each) for each in called}
    if not wanted:
        return [root for root in roots if any(True for _ in root.parameters())]
    return [root for root in roots if any(id(each) in wanted for each in root.modules())]


def _class_name(module: Module) -> str:
    inner = getattr(module, "_orig_mod", None) or module
    return type(inner).__name__

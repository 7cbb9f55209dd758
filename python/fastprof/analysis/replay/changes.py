"""The changes that a user names, in the order in which they apply.

The answers to changes: each alone, and all together.

The kernels that a selector such as op=linear means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from fastprof._system.classes import NamedTuple, dataclass
from fastprof.analysis.cells import cells_of
from fastprof.analysis.key_names import condition
from fastprof.analysis.keys import key_of
from fastprof.analysis.replay import gpu_changes, host_changes
from fastprof.analysis.replay.columns import scaling
from fastprof.analysis.replay.gpu_changes import overlapped
from fastprof.analysis.replay.host_changes import Calibrated
from fastprof.analysis.replay.model import Model
from fastprof.analysis.replay.path import path_of
from fastprof.analysis.replay.runs import Weights
from fastprof.analysis.selection import selected
from fastprof.errors import ReportError
from fastprof.model.arrays import Bools
from fastprof.model.devices import Device
from fastprof.model.names import unknown_name


@dataclass(frozen=True)
class Change:
    """A change of a run.

    Parameters
    ----------
    name : as on the command line, without `--`
    apply : (model, weights) -> new weights, and how many kernels or host calls differ
    """

    name: str
    apply: Callable[[Model, Weights], tuple[Weights, int]]


def changes_of(
    options: Mapping[str, Any], devices: Mapping[int, Device], roof: str
) -> list[Change]:
    """The changes of the options of `whatif`: types and shapes first, then times, then the host."""
    return list(_changes(options, devices, roof))


def _changes(
    options: Mapping[str, Any], devices: Mapping[int, Device], roof: str
) -> Iterator[Change]:
    if options.get("dtype"):
        name = options["dtype"]
        yield Change(f"dtype {name}", lambda m, w: gpu_changes.in_type(m, w, devices, name))
    if options.get("pad"):
        n = options["pad"]
        yield Change(f"pad {n}", lambda m, w: gpu_changes.padded(m, w, devices, n))
    for each in _listed(options.get("ideal")):
        yield Change(f"ideal {each}", _ideal(each, devices, roof))
    for each in _listed(options.get("fuse")):
        yield Change(f"fuse {each}", _selected(each, host_changes.fused))
    for each in _listed(options.get("overlap")):
        yield Change(f"overlap {each}", _selected(each, overlapped))
    for each in _listed(options.get("scale")):
        yield Change(f"scale {each}", _scale(each))
    for each in _listed(options.get("remove")):
        yield Change(f"remove {each}", _selected(each, host_changes.removed))
    if options.get("graph"):
        yield Change("graph", host_changes.as_graph)
    if options.get("no_sync"):
        yield Change("no-sync", host_changes.without_sync)
    if options.get("no_data_loading"):
        yield Change("no-data-loading", host_changes.without_loading)


def _listed(value: str | Sequence[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _selected(
    selector: str, change: Callable[..., tuple[Weights, int]]
) -> Callable[[Model, Weights], tuple[Weights, int]]:
    return lambda model, weights: change(model, weights, kernels_of(model, selector))


def _ideal(
    selector: str, devices: Mapping[int, Device], roof: str
) -> Callable[[Model, Weights], tuple[Weights, int]]:
    def apply(model: Model, weights: Weights) -> tuple[Weights, int]:
        return gpu_changes.at_ideal(model, weights, kernels_of(model, selector), devices, roof)

    return apply


def _scale(text: str) -> Callable[[Model, Weights], tuple[Weights, int]]:
    selector, factor = scaling(text)

    def apply(model: Model, weights: Weights) -> tuple[Weights, int]:
        if selector == "host":
            return host_changes.host_scaled(model, weights, factor)
        return gpu_changes.scaled(model, weights, kernels_of(model, selector), factor)

    return apply


TOGETHER: Final = "all together"
_STEPS: Final = 8  # whose critical paths are examined


class Answer(NamedTuple):
    """What a change does.

    Parameters
    ----------
    name : of the change
    wall : mean length of a step, ns
    saved : ns
    binds, binds_share : the resource with most of the critical path, and its share
    changed : kernels or host calls that the change concerns
    """

    name: str
    wall: float
    saved: float
    binds: str
    binds_share: float
    changed: int


def answers_of(
    model: Model, changes: Sequence[Change], start: Calibrated
) -> tuple[list[Answer], Weights]:
    """Each change alone, then all together if there are several; and the weights of these.

    start : the run without changes
    """
    found, total, n_total = [], start.weights, 0
    for each in changes:
        alone, n = each.apply(model, start.weights)
        found.append(_answer(model, each.name, alone, n, start.wall))
        total, n = each.apply(model, total) if n_total else (alone, n)
        n_total += n
    if len(changes) > 1:
        found.append(_answer(model, TOGETHER, total, n_total, start.wall))
    return found, total


def _answer(model: Model, name: str, weights: Weights, n: int, base: float) -> Answer:
    replayed = model.run(weights)
    wall = model.mean(replayed.wall)
    path = path_of(model, replayed, _STEPS)
    return Answer(name, wall, base - wall, *path.binds(), n)


def kernels_of(model: Model, selector: str) -> Bools:
    """[kernels] Those that a selector KEY=PATTERN or KEY!=PATTERN fits.

    Raises
    ------
    ReportError
        The selector is malformed, its key is unknown, or no kernel fits; the message names the
        nearest.
    """
    cells = cells_of(model.whole, (), [selector])
    found = selected(cells, [selector])
    if found is None or not found.any():
        name, _, pattern = condition(selector)
        values = [str(each) for each in key_of(cells, name).values]
        if not values:
            raise ReportError(f"{selector}: {name} is not recorded in {model.whole.name}")
        raise ReportError(f"{selector}: {unknown_name(name, pattern, values)}")
    return cells.flags(found)

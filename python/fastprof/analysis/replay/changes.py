"""The changes that a user names, in the order in which they apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fastprof._system.classes import dataclass
from fastprof.analysis.replay import gpu_changes, host_changes
from fastprof.analysis.replay.model import Model
from fastprof.analysis.replay.options import scaling
from fastprof.analysis.replay.overlap import overlapped
from fastprof.analysis.replay.runs import Weights
from fastprof.analysis.replay.selectors import kernels_of
from fastprof.model.devices import Device


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


def changes_of(options: Mapping[str, Any], devices: dict[int, Device], roof: str) -> list[Change]:
    """The changes of the options of `whatif`: types and shapes first, then times, then the host."""
    return list(_changes(options, devices, roof))


def _changes(options: Mapping[str, Any], devices: dict[int, Device], roof: str) -> Iterator[Change]:
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
    selector: str, devices: dict[int, Device], roof: str
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

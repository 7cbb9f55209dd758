"""The tree of layers: paths of names, their order, and repeated layers folded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fastprof.model.numbers import without_index
from fastprof.profile.lookups import DEEPEST

# The names of a layer and those around it, outermost first. () is work outside all layers.
LayerPath = tuple[str, ...]

NO_LAYER: Final = "(no layer)"


def with_ancestors(path: LayerPath) -> list[LayerPath]:
    """The path of a layer and of each layer around it. Work outside all layers is one, ()."""
    return [path[:n] for n in range(1, len(path) + 1)] or [()]


def in_tree_order(first: Mapping[LayerPath, int]) -> list[LayerPath]:
    """Paths, each before its children, siblings by `first`; () last.

    first : the time of the first launch by path, for each path and its ancestors
    """
    inside: dict[LayerPath, list[LayerPath]] = {}
    for path in first:
        if path:
            inside.setdefault(path[:-1], []).append(path)
    found: list[LayerPath] = []
    left: list[LayerPath] = [()] if () in inside else []
    while left:
        path = left.pop()
        found += [path] if path else []
        left += sorted(inside.pop(path, []), key=lambda each: (first[each], each), reverse=True)
    return [*found, ()] if () in first else found


def notes_on_depth(paths: Iterable[LayerPath], what: str) -> tuple[str, ...]:
    """A note if paths were cut; what: layers or ranges."""
    if all(len(path) < DEEPEST for path in paths):
        return ()
    return (f"{what} nested deeper than {DEEPEST} levels are part of the one around them",)


def folded(paths: Iterable[LayerPath]) -> dict[LayerPath, LayerPath]:
    """Each path with repeated siblings folded: `layers.0`, `layers.1` are `layers.*`.

    Siblings are folded if their names differ in an index only. Children of folded layers are
    siblings. `paths` contains the ancestors of each path.
    """
    by_depth = sorted(paths, key=len)
    names: dict[tuple[LayerPath, str], set[str]] = {}
    found: dict[LayerPath, LayerPath] = {(): ()}
    done = 0
    while done < len(by_depth):
        end = done
        while end < len(by_depth) and len(by_depth[end]) == len(by_depth[done]):
            end += 1
        level = [path for path in by_depth[done:end] if path]
        for path in level:
            key = found[path[:-1]], without_index(path[-1])
            names.setdefault(key, set()).add(path[-1])
        for path in level:
            parent, pattern = found[path[:-1]], without_index(path[-1])
            is_repeated = len(names[parent, pattern]) > 1
            found[path] = (*parent, pattern if is_repeated else path[-1])
        done = end
    return found


def attached(paths: Sequence[LayerPath], forward: Iterable[LayerPath]) -> list[LayerPath]:
    """Paths of recomputed work, below the layers of their forward pass.

    Checkpointing runs a layer again during backward, outside of the layers around it. The path of
    such work then begins with an inner layer, `Block_3` or `model.layers.3`. It is replaced by the
    only path of forward work that has this name.
    """
    places: dict[str, set[LayerPath]] = {}
    for path in forward:
        for layer in with_ancestors(path):
            for name in {layer[-1], ".".join(layer)} if layer else ():
                places.setdefault(name, set()).add(layer)
    found = []
    for path in paths:
        place = places.get(path[0], set()) if path else set()
        found.append((*next(iter(place)), *path[1:]) if len(place) == 1 else path)
    return found

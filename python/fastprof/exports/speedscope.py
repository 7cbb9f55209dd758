"""speedscope's JSON: a sampled profile for each GPU.

The schema: https://www.speedscope.app/file-format-schema.json
"""

from __future__ import annotations

import json
import os
from typing import Any, BinaryIO, Final

from fastprof._version import __version__
from fastprof.analysis.registry import Where
from fastprof.analysis.selection import condition_texts
from fastprof.analysis.stacks.tree import DIRECTIONS, Stacks, stacks
from fastprof.exports.events import own_weights, paths_of
from fastprof.model.markers.frames import place_of
from fastprof.profile.data import ProfileData

_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
_UNITS: Final = {"ns": "nanoseconds", "lost": "nanoseconds", "bytes": "bytes", "flops": "none"}
_OF_SOURCE: Final = ("line", "frame")
_GPUS: Final = 64  # that have a profile each; more share one


def write(
    profile: ProfileData,
    file: BinaryIO,
    stack: str = "path",
    weight: str = "ns",
    where: Where | None = None,
) -> None:
    """Write a profile for each GPU; forward, backward and other work are roots.

    More than 64 GPUs share one profile.

    The parameters and errors are those of `collapsed.write`; stacks are call paths by default.
    """
    frames = _Frames()
    profiles = []
    for name, tree in _trees(profile, stack, where):
        profiles.append(_profile(name, tree, frames, weight))
    text = {
        "$schema": _SCHEMA,
        "exporter": f"fastprof {__version__}",
        "name": os.path.basename(profile.name),
        "activeProfileIndex": 0,
        "profiles": profiles,
        "shared": {"frames": frames.found},
    }
    file.write(json.dumps(text, separators=(",", ":")).encode())


class _Frames:
    """The frames of all profiles: nodes of equal type and name are one frame."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self._ids: dict[tuple[str, str], int] = {}

    def number(self, kind: str, name: str) -> int:
        """The index of the frame of a node."""
        key = (kind, name)
        if key not in self._ids:
            self._ids[key] = len(self.found)
            frame: dict[str, Any] = {"name": name.encode("utf-8", "replace").decode()}
            place = place_of(name) if kind in _OF_SOURCE else None
            if place is not None and place.line is not None:
                frame |= {"file": place.file, "line": place.line}
            self.found.append(frame)
        return self._ids[key]


def _trees(profile: ProfileData, stack: str, where: Where | None) -> list[tuple[str, Stacks]]:
    """The tree of each GPU, or of all if there are many, with its name."""
    devices = sorted(profile.devices)
    if len(devices) < 2:
        name = _name(profile, devices[0] if devices else None)
        return [(name, stacks(profile, stack, where=where))]
    if len(devices) > _GPUS:
        return [(f"{len(devices):,} GPUs", stacks(profile, stack, where=where))]
    trees = []
    for device in devices:
        # Not device=N: patterns of one key are alternatives, and `where` may have that key.
        others = [f"device!={other}" for other in devices if other != device]
        of_device = [*condition_texts(where), *others]
        trees.append((_name(profile, device), stacks(profile, stack, where=of_device)))
    return trees


def _name(profile: ProfileData, device: int | None) -> str:
    known = profile.devices.get(device) if device is not None else None
    words = [] if device is None else [f"GPU {device}"]
    if known is not None and known.name:
        words.append(str(known.name))
    return " ".join(words) or "GPU"


def _profile(name: str, tree: Stacks, frames: _Frames, weight: str) -> dict[str, Any]:
    weights = own_weights(tree, weight)
    kinds, names = tree.type.array().tolist(), tree.name.array().tolist()
    numbers = [frames.number(kind, str(text)) for kind, text in zip(kinds, names, strict=True)]
    paths = paths_of(tree)
    samples: list[list[int]] = []
    results: list[int] = []
    for column, direction in enumerate(DIRECTIONS):
        root = frames.number("direction", direction)
        for row in weights[:, column].nonzero()[0].tolist():
            samples.append([root, *(numbers[path] for path in paths[row])])
            results.append(int(weights[row, column]))
    return {
        "type": "sampled",
        "name": name,
        "unit": _UNITS[weight],
        "startValue": 0,
        "endValue": sum(results),
        "samples": samples,
        "weights": results,
    }

"""Labels of the ranges of a PyTorch-profiler trace: category, stack, modules, name, arguments."""

from __future__ import annotations

import numpy as np

from fastprof._core._take import distinct
from fastprof.model.arrays import Int32
from fastprof.model.markers.kineto import FIELD, NUMBERED
from fastprof.model.trace import OF_EVENT
from fastprof.readers.kineto.event_columns import KinetoFile

# Old traces capitalise categories and use other names.
_CATEGORIES = {"operator": "cpu_op"}


def labels_of(file: KinetoFile) -> tuple[list[str], Int32]:
    """The distinct labels in the form that `markers.kineto` parses, and that of each range."""
    events = file.tables["ranges"]
    category = np.maximum(events["category"], 0) * np.int32(2) + (events["seq"] >= 0)
    columns = [category, *(events[key] for key in ("stack", "hierarchy", "label"))]
    used = [np.zeros(1, np.int32)]
    place = np.zeros(len(events["label"]), np.int32)
    for column in columns:
        place, tails = _combined(place, column)
        used = [table[tails[0]] for table in used] + [tails[1]]
    categories = []
    for name in file.categories:
        plain = _CATEGORIES.get(name.lower(), name.lower())
        categories += [plain, NUMBERED if plain == "cpu_op" else plain]
    texts = [categories, file.stacks, file.stacks, file.labels]
    labels = [
        OF_EVENT + FIELD.join(text[i] if i >= 0 else "" for text, i in zip(texts, ids, strict=True))
        for ids in zip(*(table.tolist() for table in used[1:]), strict=True)
    ]
    return labels, place


def _combined(first: Int32, second: Int32) -> tuple[Int32, tuple[Int32, Int32]]:
    """The index of each row's pair among the distinct pairs of two columns (values >= -1), and the
    columns of the distinct pairs."""
    if not len(first):
        empty = np.empty(0, np.int32)
        return empty, (empty, empty)
    width = int(second.max()) + 2
    key = first.astype(np.int64) * width + second + 1
    most = int(key.max()) + 1
    if most <= max(4 * len(key), 1 << 16):
        found, place = distinct(key.astype(np.int32), most)
        pairs = np.array(found, np.int64)
    else:
        pairs, place = np.unique(key, return_inverse=True)
    return place.astype(np.int32), (
        (pairs // width).astype(np.int32),
        (pairs % width - 1).astype(np.int32),
    )

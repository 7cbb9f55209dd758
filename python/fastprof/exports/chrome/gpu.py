"""Events of GPU work: categories kernel, gpu_memcpy and gpu_memset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._rows import RowWriter
from fastprof._core._take import take
from fastprof.exports.chrome.rows import EventRows, quoted
from fastprof.exports.events import SelectedWork
from fastprof.exports.names import WORK
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import NO_TIME

_CATEGORIES: Final = {"memcpy": "gpu_memcpy", "memset": "gpu_memset"}
# Arguments of torch.profiler; fastprof adds WORK.
_TORCH: Final = {
    "device": "device",
    "context": "context",
    "stream": "stream",
    "grid": "grid",
    "block": "block",
    "registers": "registers per thread",
    "shared_memory": "shared memory",
    "graph_id": "graph id",
    "graph_node": "graph node id",
}


def gpu_rows(work: SelectedWork, correlation: Int64, external: Int64, origin: int) -> RowWriter:
    """The events of GPU work.

    Parameters
    ----------
    correlation, external : int64 [n], numbers of the launching call and of the range around it, -1
        if unknown
    origin : subtracted from times, ns
    """
    rows = EventRows(len(work), origin)
    look, _ = work.looks
    rows.texts(look, _beginnings(work))
    rows.number("External id", external)
    rows.number("correlation", correlation)
    for name, key in (("flops", "FLOPs"), ("bytes", "bytes read and written"), ("copied", "bytes")):
        rows.number(key, work.numbers(name))
    rows.number("launch latency (ns)", work.latency, none=NO_TIME)
    rows.plain("}")
    rows.time(work.start)
    rows.duration(work.start, work.end, work.numbers("sil") < 0)
    return rows.done()


def _beginnings(work: SelectedWork) -> list[str]:
    """Type, category, name, places and arguments of each look, the arguments still open."""
    columns = {name: work.of_looks(name) for name in (*_TORCH, *WORK)}
    names, kinds = work.of_looks("name"), work.of_looks("kind")
    directions, memory = work.of_looks("copy_direction"), work.of_looks("copy_memory")
    found = []
    for i, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind in _CATEGORIES and (name or "[CUDA").startswith("[CUDA"):  # not torch's own name
            name = _copy_name(kind, directions[i], memory[i])
        arguments = ",".join(
            f"{quoted(key)}:{quoted(value)}"
            for names_of in (_TORCH, WORK)
            for key, value in _arguments({key: columns[each][i] for each, key in names_of.items()})
        )
        found.append(
            f'"ph":"X","cat":"{_CATEGORIES.get(kind, "kernel")}","name":{quoted(name or "")},'
            f'"pid":{_number(columns["device"][i])},"tid":{_number(columns["stream"][i])},'
            f'"args":{{{arguments or _NO_ARGUMENTS}'
        )
    return found


_NO_ARGUMENTS: Final = '"queued":0'


def _number(value: int | None) -> int:
    return -1 if value is None else value


def _arguments(values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if key == "layer":
            value = ":".join(value or ())
        if value not in (None, "", ()):
            yield key, value


def _copy_name(kind: str, direction: str | None, memory: str | None) -> str:
    """`Memcpy HtoD (Pageable -> Device)`, `Memset (Device)`."""
    parts = ["Memset" if kind == "memset" else "Memcpy"]
    if direction:
        parts.append(direction)
    if memory:
        parts.append(f"({' -> '.join(each.capitalize() for each in memory.split(' -> '))})")
    return " ".join(parts)


def flow_rows(
    phase: str, category: str, ids: Int64, places: tuple[Int32, list[str]], time: Int64, origin: int
) -> RowWriter:
    """Events at the starts (phase s) or ends (phase f) of flows.

    ids : int64 [n]; places: index [n] into texts of pid and tid; time : int64 [n]
    """
    rows = EventRows(len(ids), origin)
    end = ',"bp":"e"' if phase == "f" else ""
    rows.plain(f'"ph":"{phase}","cat":"{category}","name":"{category}"{end}')
    rows.number("id", ids, none=NO_TIME)
    which, texts = places
    rows.plain(",")
    rows.texts(which, texts)
    rows.time(time)
    return rows.done()


def stream_places(work: SelectedWork) -> tuple[Int32, list[str]]:
    """The pid and tid of the events of GPU work, as for `flow_rows`."""
    return work.place, [
        f'"pid":{device},"tid":{stream}' for _, device, _, stream in work.places.tolist()
    ]


def numbers_of_calls(work: SelectedWork) -> tuple[Int64, Int64]:
    """Correlation ids of GPU work and of API calls, unique in the file.

    Files of several processes repeat ids; torch.profiler writes one file per process.
    """
    api, own = work.profile.api, np.ascontiguousarray(work.numbers("correlation"), np.int64)
    if len({*work.places[:, 0].tolist(), *api.threads.pid.tolist()} - {-1}) < 2:
        return own, api.correlation
    of_work = take(np.ascontiguousarray(work.places[:, 0]), work.place)
    correlation = np.concatenate([own, api.correlation])
    numbers, _ = alike([np.concatenate([of_work, api.pid]), correlation])
    unique = np.where(correlation < 0, -1, numbers.astype(np.int64) + 1)
    return unique[: len(own)], unique[len(own) :]

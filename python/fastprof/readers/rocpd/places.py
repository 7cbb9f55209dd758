"""Processes, threads, GPUs and kernels of all runs of a rocpd database, by their ids in a run."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import NamedTuple
from fastprof.model.arrays import Int32, Int64
from fastprof.readers.nvprof.call_names import demangled
from fastprof.readers.rocpd import schema
from fastprof.readers.rocpd.schema import Run
from fastprof.readers.sqlite.database import Database, TableColumns

CPU: Final = "CPU"
GPU: Final = "GPU"
_LARGEST: Final = np.iinfo(np.int32).max
_OF_TRACKS: Final = ("pid", "tid", "agent_id", "queue_id", "stream_id")


class Agent(NamedTuple):
    """A processor. `device` is the number of a GPU, -1 for others."""

    type: str
    device: int


class Symbol(NamedTuple):
    """A kernel: index of its name in `Places.strings`, and the registers of a thread, or -1."""

    name: int
    registers: int


class Places:
    """What the runs that were added refer to; ids of a run are those of its tables.

    Attributes
    ----------
    pids : process ids of the operating system, -1 for none
    threads : index into `pids` and thread id of the operating system
    strings : texts
    lost : ids of kernels without a name
    """

    def __init__(self, database: Database, runs: Sequence[Run]) -> None:
        self._database = database
        self.pids: list[int] = []
        self.threads: list[tuple[int, int]] = []
        self.strings: list[str | None] = []
        self.lost: list[int] = []
        self.problem: str | None = None
        self._text_ids: dict[str, int] = {}
        self._machines = _machines(database, runs)
        self._agents = _agents_of(database, runs, self._machines)

    def enter(self, run: Run) -> None:
        """Refer to the ids of another run."""
        self._run = run
        rows = schema.rows(self._database, run, "rocpd_info_process", "id pid")
        self._pid_of = {process: pid for process, pid in rows if _is_id(pid)}
        rows = schema.rows(self._database, run, "rocpd_info_thread", "id pid tid")
        self._thread_of = {thread: (process, tid) for thread, process, tid in rows if _is_id(tid)}
        columns = f"id {' '.join(_OF_TRACKS)}"
        rows = schema.rows(self._database, run, "rocpd_track", columns)
        self._tracks = {track: place for track, *place in rows}
        self._process_places: dict[int, int] = {}
        self._thread_places: dict[tuple[int, int], int] = {}

    def place(self, configs: TableColumns) -> None:
        """Replace the tracks of rows by what they stand for, in place."""
        tracks = configs.pop("track_id")
        for row in np.flatnonzero(tracks >= 0).tolist():
            place = self._tracks.get(int(tracks[row]), ())
            for name, value in zip(_OF_TRACKS, place, strict=False):
                if _is_id(value):
                    configs[name][row] = value

    def place_of(self, place: Sequence[Any]) -> tuple[int, int, int]:
        """Process, thread and agent of a row by its own columns and its track; -1 for none."""
        *own, track = place
        process, tid, agent, *_ = self._tracks.get(track, [None] * len(_OF_TRACKS))
        chosen = (
            mine if _is_id(mine) else other
            for mine, other in zip(own, (process, tid, agent), strict=True)
        )
        process, tid, agent = (value if _is_id(value) else -1 for value in chosen)
        return process, tid, agent

    def names_of(self, process: int, thread: int) -> tuple[int, int]:
        """Process and thread id of the operating system; -1 for none."""
        _, tid = self._thread_of.get(thread, (process, thread))
        return self._pid_of.get(process, process), tid

    def text(self, text: str | None) -> int:
        """The index of a text in `strings`; -1 for None."""
        if text is None:
            return -1
        place = self._text_ids.setdefault(text, len(self.strings))
        if place == len(self.strings):
            self.strings.append(text)
        return place

    def processes(self, ids: Int64) -> Int32:
        """[rows] Processes by their ids; -1 for ids below 0."""
        return np.array([self._process(number) for number in ids.tolist()], np.int32)

    def _process(self, number: int) -> int:
        if number < 0:
            return -1
        place = self._process_places.setdefault(number, len(self.pids))
        if place == len(self.pids):
            pid = self._pid_of.get(number, number)
            self.pids.append(pid if pid <= _LARGEST else -1)
        return place

    def threads_of(self, processes: Int64, ids: Int64) -> Int32:
        """[rows] Threads by ids of processes and threads; -1 for ids below 0."""
        pairs = zip(processes.tolist(), ids.tolist(), strict=True)
        return np.array([self._thread(*pair) for pair in pairs], np.int32)

    def _thread(self, process: int, number: int) -> int:
        if number < 0:
            return -1
        owner, tid = self._thread_of.get(number, (process, number))
        key = self._process(process if process >= 0 else owner if _is_id(owner) else -1), tid
        place = self._thread_places.setdefault(key, len(self.threads))
        if place == len(self.threads):
            self.threads.append(key)
        return place

    def agents(self, ids: Int64) -> list[Agent]:
        """Agents by their ids. Unknown ones have no type; their devices come after the known."""
        known = self._agents.of_run[self._run.number]
        return [known.get(number) or self._unknown_agent(number) for number in ids.tolist()]

    def _unknown_agent(self, number: int) -> Agent:
        if number < 0:
            return Agent("", -1)
        places = self._agents.unknown
        return Agent("", places.setdefault((self._run.number, number), self._agents.next(places)))

    def symbols(self, ids: Int64) -> list[Symbol]:
        """Kernels by their ids."""
        columns = "id arch_vgpr_count accum_vgpr_count", "display_name kernel_name"
        rows = schema.rows(self._database, self._run, "rocpd_info_kernel_symbol", *columns)
        wanted = set(ids.tolist())
        kept = [row for row in rows if row[0] in wanted]
        # The displayed name is that which the user of the profiler chose.
        names, self.problem = demangled([None if shown else name for *_, shown, name in kept])
        symbols = {
            number: Symbol(self.text(shown or name or None), _sum(*counts))
            for (number, *counts, shown, _), name in zip(kept, names, strict=True)
        }
        self.lost += sorted(wanted - symbols.keys())
        return [symbols.get(number, Symbol(-1, -1)) for number in ids.tolist()]


class _Agents:
    """Agents of all runs, and the devices of those that the tables lack."""

    def __init__(self, of_run: list[dict[int, Agent]], n_devices: int) -> None:
        self.of_run, self._n_devices = of_run, n_devices
        self.unknown: dict[tuple[int, int], int] = {}

    def next(self, places: dict[tuple[int, int], int]) -> int:
        return self._n_devices + len(places)


def _machines(database: Database, runs: Sequence[Run]) -> list[dict[Any, Any]]:
    """By run, the machine of each node id: its own id, or the node id if it has none."""
    return [
        {
            node: machine or node
            for node, machine in schema.rows(database, run, "rocpd_info_node", "id", "machine_id")
        }
        for run in runs
    ]


def _agents_of(
    database: Database, runs: Sequence[Run], machines: Sequence[dict[Any, Any]]
) -> _Agents:
    """The agents of all runs. GPUs are numbered per machine, further machines come after."""
    rows_of_run = [gpus_of(database, run) for run in runs]
    highest: dict[Any, int] = {}
    for rows, machine_of in zip(rows_of_run, machines, strict=True):
        for _, node, kind, number in rows:
            machine = machine_of.get(node, node)
            if kind == GPU:
                highest[machine] = max(highest.get(machine, -1), number)
    first, n_devices = {}, 0
    for machine, number in highest.items():
        first[machine] = n_devices
        n_devices += number + 1
    return _Agents(
        [
            {
                agent: Agent(
                    kind, first[machine_of.get(node, node)] + number if kind == GPU else -1
                )
                for agent, node, kind, number in rows
            }
            for rows, machine_of in zip(rows_of_run, machines, strict=True)
        ],
        n_devices,
    )


def gpus_of(database: Database, run: Run) -> list[tuple[int, Any, str, int]]:
    """Id, node and type of each agent, and the number of GPUs among those of their machine.

    It is the index among GPUs, which HIP uses too, or the place in the table if several GPUs have
    the same one, or one has none.
    """
    columns = "id nid type_index", "type"
    recorded = schema.rows(database, run, "rocpd_info_agent", *columns)
    rows = [row for row in recorded if row[0] is not None]
    by_node: dict[Any, list[Any]] = {}
    for agent, node, index, kind in rows:
        if kind == GPU:
            by_node.setdefault(node, []).append((agent, index))
    number_of = {}
    for gpus in by_node.values():
        indices = [index for _, index in gpus]
        is_known = all(map(_is_index, indices)) and len(set(indices)) == len(indices)
        for place, (agent, index) in enumerate(sorted(gpus, key=itemgetter(0))):
            number_of[agent] = index if is_known else place
    return [(agent, node, kind or "", number_of.get(agent, -1)) for agent, node, _, kind in rows]


def small(values: npt.NDArray[Any]) -> Int32:
    """Numbers as int32, if they fit; the order of distinct numbers instead, if one does not."""
    if len(values) and values.max() > _LARGEST:
        known = np.unique(values[values >= 0])
        values = np.where(values < 0, -1, np.searchsorted(known, values))
    result: Int32 = np.maximum(values, -1).astype(np.int32)
    return result


def _sum(*counts: int | None) -> int:
    """The sum of numbers of registers; -1 if it is unknown or impossible."""
    total = sum(filter(None, counts))
    return total if any(counts) and 0 <= total <= _LARGEST else -1


def _is_id(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _is_index(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < 1 << 16

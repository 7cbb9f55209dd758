"""RunData: the ranks of a run, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from fastprof._system.threads import computed_once
from fastprof.errors import FastprofError
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Ints
from fastprof.model.heading import Heading
from fastprof.model.table import ColumnData, Floats, Table, text_column
from fastprof.ranks.all_ranks import assign_ranks, rank_in_name
from fastprof.ranks.run import columns as headings
from fastprof.ranks.run.causes import (
    BEFORE,
    COPIES,
    SCHEDULE,
    SLOWER,
    UNEVEN,
    Explained,
    WaitCause,
    explain,
)
from fastprof.ranks.run.changes import kinds_of_causes, no_slower, parse_change
from fastprof.ranks.run.clocks import Clocks, estimated_clocks, hosts_of, recorded_clocks
from fastprof.ranks.run.critical import CriticalPath, critical_path, path_rows
from fastprof.ranks.run.graph import RunChange
from fastprof.ranks.run.groups import group_rows, stage_rows, waiting_rows
from fastprof.ranks.run.match import CollectiveInstances, match
from fastprof.ranks.run.peers import Peers, peers_of
from fastprof.ranks.run.record import Label, RankRecord, RecordedFile
from fastprof.ranks.run.replay import RunReplay
from fastprof.ranks.run.waits import (
    PARTS,
    UNKNOWN,
    Exposed,
    StepParts,
    Waits,
    common_steps,
    step_parts,
    waits_of,
)
from fastprof.ranks.work import Failure

CLOCKS: Final = ("estimated", "recorded")
FINDING: Final = 0.01  # of the step: a cause that costs less is no finding
_COSTED: Final = 24  # causes whose cost is replayed


class RanksError(FastprofError, ValueError):
    """The files are not those of the ranks of one run, or an argument is invalid."""


class RunData:
    """The ranks of a run; `fastprof.Ranks` adds the page and the exports.

    Tables are mappings of name to numpy array with `rows`, `to_pandas`, `to_arrow`, `write_csv` and
    `text`. Times are ns. Steps, waits and instances use the aligned clocks.

    Parameters
    ----------
    results : the ranks or the failure of each file, in order of name
    clock : `estimated` from the ends of collectives, or `recorded`

    Attributes
    ----------
    records : list of RankRecord, in order of number
    numbers : list of int, the number of each
    rule : how ranks are numbered, see `fastprof.ranks.all_ranks`
    failures : list of Failure
        Files that could not be read.

    Raises
    ------
    RanksError
        A rank is in two files, the files are of runs of different size, or of two runs.
    """

    def __init__(self, results: Sequence[RecordedFile | Failure], clock: str = "estimated") -> None:
        if clock not in CLOCKS:
            raise RanksError(f"expected clock {' or '.join(CLOCKS)}, found {clock!r}")
        self.clock = clock
        self.files = [result for result in results if isinstance(result, RecordedFile)]
        self.failures = [result for result in results if isinstance(result, Failure)]
        self.empty = [file.path for file in self.files if not file.ranks]
        records = [record for file in self.files for record in file.ranks]
        recorded = [record.rank if record.n_places == 1 else None for record in records]
        _check_ranks(records, recorded)
        numbers, self.rule = assign_ranks([record.path for record in records], recorded)
        order = np.argsort(np.array(numbers, np.int64), kind="stable").tolist()
        self.records: list[RankRecord] = [records[i] for i in order]
        self.numbers: list[int] = [numbers[i] for i in order]
        self._check_one_run()

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} files failed" if self.failures else ""
        return f"<fastprof.Ranks of {len(self.records)} ranks{failed}>"

    def __len__(self) -> int:
        return len(self.records)

    def _check_one_run(self) -> None:
        talking = [i for i, record in enumerate(self.records) if len(record.calls)]
        if len(talking) < 2:
            return
        if self.waits.is_shared.any():
            self._check_one_recording()
            return
        one, other = (self.records[i] for i in talking[:2])
        why = "; ".join(
            sorted({f"rank {self.numbers[row.rank]}: {row.calls} calls, {row.reason}"
                    for row in self.instances.unmatched})[:2]
        )  # fmt: skip
        raise RanksError(
            f"{one.path}, {other.path}: no collective of one rank matches one of another, so these "
            f"are not ranks of one run{f' ({why})' if why else ''}; give the files of one recording"
        )

    def _check_one_recording(self) -> None:
        """Raise an error for ranks of one group whose numbered collectives never coincide."""
        instances = self.instances
        part = instances.parts()
        if not part.any():
            return
        known = instances.of_call >= 0
        own, seq = instances.group[instances.of_call[known]], instances.calls.seq[known]
        for number, group in enumerate(instances.groups):
            others = [rank for rank in group.ranks if part[rank] != part[group.ranks[0]]]
            if not others or group.is_pair or (seq[own == number] < 0).any():
                continue
            one, other = (self.records[rank].path for rank in (group.ranks[0], others[0]))
            raise RanksError(
                f"{one}, {other}: both are of the group {group.name}, but no number of a "
                "collective is in both, so these are not of one recording; give the files of one"
            )

    @computed_once
    def instances(self) -> CollectiveInstances:
        """The matched collectives."""
        return match(self.records, self.numbers)

    @computed_once
    def clocks(self) -> Clocks:
        """The clocks of the ranks."""
        if self.clock == "recorded":
            return recorded_clocks(self.instances)
        return estimated_clocks(self.instances, hosts_of(self.records))

    @computed_once
    def waits(self) -> Waits:
        """Arrivals, waits and transfers of all instances."""
        return waits_of(self.instances, self.clocks)

    @computed_once
    def exposed(self) -> list[Exposed]:
        """What the work of each rank waits for."""
        return [Exposed(self.waits, rank, record.chain) for rank, record in enumerate(self.records)]

    @computed_once
    def step_numbers(self) -> list[Int64]:
        """The number of each step in the run, by rank."""
        return common_steps(self.records, self.waits)

    @computed_once
    def step_times(self) -> list[StepParts]:
        """The time of the steps of each rank in parts."""
        return [
            step_parts(self.waits, rank, record, self.exposed[rank])
            for rank, record in enumerate(self.records)
        ]

    @computed_once
    def peers(self) -> Peers:
        """Ranks that run one program."""
        return peers_of(self.records, self.waits, self.step_numbers)

    @computed_once
    def explained(self) -> Explained:
        """The causes of waits."""
        return explain(self.records, self.waits, self.exposed, self.peers)

    @computed_once
    def replay(self) -> RunReplay:
        """The joined replay of all ranks."""
        return RunReplay(self.records, self.waits, self.step_numbers)

    @property
    def n_steps(self) -> int:
        """The counted steps of the run."""
        return max((int(record.steps.is_counted.sum()) for record in self.records), default=0)

    @property
    def rank_steps(self) -> int:
        """Counted steps, summed over ranks."""
        return self.rank_steps_of(range(len(self.records)))

    def rank_steps_of(self, ranks: Iterable[int]) -> int:
        """Counted steps, summed over some ranks."""
        return sum(int(_counted(self.records[rank]).sum()) for rank in ranks)

    @computed_once
    def calls_in_steps(self) -> Bools:
        """[calls] Whether a call starts in a counted step of its rank."""
        result = []
        for record in self.records:
            step = record.steps.rows_at(record.calls.start)
            result.append(np.append(_counted(record), False)[step])
        return np.concatenate([np.empty(0, bool), *result])

    @computed_once
    def mean_parts(self) -> np.ndarray:
        """float64 [ranks, PARTS + hidden + step] Means over the counted steps of each rank, ns."""
        result = np.full((len(self.records), len(PARTS) + 2), np.nan)
        for row, times, record in zip(result, self.step_times, self.records, strict=True):
            counted = _counted(record)
            if len(counted):
                row[: len(PARTS)] = times.parts[counted].mean(axis=0)
                row[len(PARTS)] = times.hidden[counted].mean()
                row[len(PARTS) + 1] = (times.end - times.start)[counted].mean()
        return result

    @property
    def step_ns(self) -> float:
        """The mean length of a counted step over ranks, ns; NaN without ranks."""
        known = self.mean_parts[:, -1]
        known = known[~np.isnan(known)]
        return float(known.mean()) if len(known) else float("nan")

    @property
    def missing(self) -> list[int]:
        """Ranks of the run without a readable file, where files record the number of ranks."""
        size = max((record.world_size or 0 for record in self.records), default=0)
        members = {rank for group in self.instances.groups for rank in group.members}
        wanted = members | set(range(size)) if self.rule == "recorded" else members
        return sorted(wanted - set(self.numbers))

    @property
    def unreadable(self) -> list[int]:
        """Missing ranks whose file is there, but could not be read or has no GPU work."""
        names = [failure.path for failure in self.failures] + self.empty
        numbers = {rank_in_name(path) for path in names}
        return [rank for rank in self.missing if rank in numbers]

    @computed_once
    def ranks(self) -> Table:
        """A row per rank: its steps in parts, and how long others wait for it; means of a step."""
        n = len(self.records)
        last, waited = np.zeros(n, np.int64), np.zeros(n)
        for one in self.exposed:
            known = (one.last >= 0) & (one.wait > 0)
            np.add.at(waited, one.last[known], one.wait[known])
        np.add.at(last, self.waits.last[self.waits.is_shared], 1)
        steps = max(self.n_steps, 1)
        parts, clocks = self.mean_parts, self.clocks
        return _table(
            headings.RANKS,
            {
                "rank": _ints(self.numbers),
                "file": text_column([record.path for record in self.records]),
                "gpu": _ints([record.device for record in self.records]),
                "host": _ints(clocks.host),
                "steps": _ints([int(record.steps.is_counted.sum()) for record in self.records]),
                "step_ns": Floats(parts[:, -1]),
                **{f"{name}_ns": Floats(parts[:, i]) for i, name in enumerate(PARTS)},
                "hidden_ns": Floats(parts[:, len(PARTS)]),
                "last": _ints(last),
                "waited_for_ns": Floats(waited / steps),
                "offset_ns": _signed(clocks.offset),
                "drift_ppm": Floats(clocks.drift * 1e6),
                "residual_ns": Floats(clocks.residual),
            },
        )

    @computed_once
    def groups(self) -> Table:
        """A row per kind of process group, means of a step and rank; the longest waits first."""
        return _of_rows(headings.GROUPS, group_rows(self)).sort("wait_ns")

    @computed_once
    def causes(self) -> Table:
        """Why ranks arrive late, what others wait for it, and what it costs; the largest first."""
        return _of_rows(headings.CAUSES, [self._cause_row(row) for row in self.cause_rows])

    def _cause_row(self, row: CauseRow) -> dict[str, Any]:
        return {
            "rank": self.number(row.rank),
            "cause": row.name,
            "times": row.times,
            "waited_ns": row.waited,
            "costs_ns": row.costs,
            "where": row.where,
        }

    @computed_once
    def cause_rows(self) -> list[CauseRow]:
        """The causes by rank and name, the costliest first."""
        return _cause_rows(self, self.explained)

    @property
    def findings(self) -> list[CauseRow]:
        """The causes that cost at least 1 % of the step.

        Not the schedule of a pipeline, nor, where several steps are recorded, what precedes them.
        """
        least = FINDING * self.step_ns
        others = {SCHEDULE, BEFORE} if self.n_steps > 1 else {SCHEDULE}
        return [row for row in self.cause_rows if row.weight >= least and row.name not in others]

    def number(self, rank: int) -> int | None:
        """The number of a rank; None for one without a file."""
        return None if rank == UNKNOWN else self.numbers[rank]

    def waiting(self) -> Table:
        """Waits of each rank and step, by group and by the rank waited for."""
        return _of_rows(headings.WAITS, waiting_rows(self)).sort("wait_ns")

    def steps(self) -> Table:
        """A row per rank and step: its parts add up to its length."""
        rows = []
        for rank, times in enumerate(self.step_times):
            for i, number in enumerate(self.step_numbers[rank].tolist()):
                parts = dict(zip((f"{name}_ns" for name in PARTS), times.parts[i].tolist(),
                                 strict=True))  # fmt: skip
                rows.append(
                    {
                        "rank": self.numbers[rank],
                        "step": number,
                        "number": int(times.number[i]),
                        "start_ns": int(times.start[i] - self.begin),
                        "step_ns": int(times.end[i] - times.start[i]),
                        **parts,
                        "hidden_ns": int(times.hidden[i]),
                    }
                )
        return _of_rows(headings.STEPS, rows)

    @computed_once
    def begin(self) -> int:
        """When the run begins, ns on its clock."""
        begins = [record.chain.begin for record in self.records]
        ranks = np.arange(len(begins), dtype=np.int32)
        return int(self.clocks.moved(np.array(begins, np.int64), ranks).min()) if begins else 0

    def calls(self) -> Table:
        """A row per instance of a collective, in order of its first arrival."""
        waits, instances = self.waits, self.instances
        order, bounds = waits.members
        n = len(instances)
        first = np.minimum.reduceat(waits.arrival[order], bounds[:-1]) if n else waits.last_arrival
        signatures = [instances.calls.signatures[i] for i in instances.signature.tolist()]
        numbers = np.array([*self.numbers, -1], np.int64)
        table = _table(
            headings.INSTANCES,
            {
                "instance": _ints(np.arange(n)),
                "group": text_column([one.group or None for one in signatures]),
                "collective": text_column([one.kind for one in signatures]),
                "bytes": _ints([one.size for one in signatures]),
                "ranks": _ints(np.diff(bounds)),
                "missing": _ints(waits.missing),
                "first_ns": _ints(first - self.begin),
                "late_ns": _ints(waits.last_arrival - first),
                "last_rank": _ints(np.where(waits.is_shared, numbers[waits.last], -1)),
                "transfer_ns": _ints(waits.transfer),
            },
        )
        return table.take(np.argsort(first, kind="stable"))

    def unmatched(self) -> Table:
        """Calls that match none of another rank, with the reason."""
        rows = [
            {
                "rank": self.numbers[one.rank],
                "group": one.group or None,
                "calls": one.calls,
                "reason": one.reason,
            }
            for one in self.instances.unmatched
        ]
        return _of_rows(headings.UNMATCHED, rows)

    def stages(self) -> Table:
        """Pipeline stages: how long each waits for messages of others; empty without messages."""
        return _of_rows(headings.STAGES, stage_rows(self))

    def critical_path(self, change: str | None = None) -> CriticalPath:
        """What the replayed steps consist of, across ranks; with a change as of `what_if`."""
        made = None if change is None else self.change(change)
        return critical_path(self.records, self.replay.path(made), self.replay.n_steps)

    def path(self, change: str | None = None) -> Table:
        """The critical path by rank and part, the longest first; its parts add up to the step.

        Parameters
        ----------
        change : str, optional
            The path with this change, as of `what_if`.

        Raises
        ------
        RanksError
            The change is unknown.
        """
        result = self.critical_path(change)
        where = {key: _place(label) for key, label in result.where.items()}
        return _of_rows(headings.PATH, path_rows(result, self.numbers, where))

    def what_if(self, changes: Iterable[str] | str) -> Table:
        """Replay the run with changes, each alone.

        Parameters
        ----------
        changes : str or several
            `median:RANK` a rank like the median one; `no-data-loading`, `no-data-loading:RANK`;
            `communication:FACTOR` transfers that take that part of their time; `equal-work` all
            ranks take the mean; `no-stragglers` no rank takes longer than the median one.

        Raises
        ------
        RanksError
            A change is unknown, or a rank.
        """
        given = [changes] if isinstance(changes, str) else list(changes)
        recorded = self.replay.mean(self.replay.recorded)
        rows = [{"change": "as recorded", "step_ns": recorded, "saved_ns": 0.0, "saved_share": 0.0}]
        for text in given:
            change = self.change(text)
            step = self.replay.mean(self.replay.run(change))
            saved = recorded - step
            rows.append(
                {"change": text, "step_ns": step, "saved_ns": saved,
                 "saved_share": saved / recorded if recorded else np.nan}
            )  # fmt: skip
        return _of_rows(headings.CHANGES, rows)

    def change(self, text: str) -> RunChange:
        """See `what_if`."""
        try:
            return parse_change(text, self.peers, self.numbers)
        except ValueError as error:
            raise RanksError(str(error)) from error


class CauseRow:
    """A cause of waits: a rank and what it does longer than the median rank.

    Attributes
    ----------
    rank : index of the rank, UNKNOWN for one without a file
    name : the cause
    times : instances in which the rank was last for it
    waited : ns that the work of all ranks waited, a step
    costs : ns, what the replayed step is shorter without it; NaN if that cannot be replayed
    where : layer, operator, shape or line with most of it; None if unknown
    n_ranks : ranks of the run
    """

    def __init__(
        self,
        rank: int,
        name: str,
        times: int,
        waited: float,
        costs: float,
        where: str | None,
        n_ranks: int,
    ) -> None:
        self.rank, self.name, self.times = rank, name, times
        self.waited, self.costs, self.where, self.n_ranks = waited, costs, where, n_ranks

    @property
    def weight(self) -> float:
        """What it costs, ns a step; if no replay tells, what a rank waits for it on average."""
        if not np.isnan(self.costs):
            return self.costs
        return self.waited / max(self.n_ranks - 1, 1)


_HOST: Final = ("host-bound", "launch-bound")  # by the length of gaps
_KINDS: Final = {
    SLOWER: ("compute",), UNEVEN: ("compute",), COPIES: ("copies",), **dict.fromkeys(_HOST, _HOST),
}  # fmt: skip


def _cause_rows(run: RunData, explained: Explained) -> list[CauseRow]:
    waited: dict[tuple[int, str], float] = {}
    times: dict[tuple[int, str], int] = {}
    most: dict[tuple[int, str], WaitCause] = {}
    for cause, ns in explained.waited.items():
        if ns <= 0:
            continue
        key = cause.rank, cause.name
        waited[key] = waited.get(key, 0.0) + ns
        times[key] = times.get(key, 0) + explained.times[cause]
        if key not in most or ns > explained.waited[most[key]]:
            most[key] = cause
    steps = max(run.n_steps, 1)
    order = sorted(waited, key=lambda key: -waited[key])
    costs = _costs(run, order[:_COSTED], waited)
    rows = [
        CauseRow(
            *key, times[key], waited[key] / steps, costs.get(key, np.nan),
            _where(explained.labels, most[key].label), len(run),
        )
        for key in order
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row.name == SCHEDULE, -row.weight))


def _costs(
    run: RunData, keys: Sequence[tuple[int, str]], waited: dict[tuple[int, str], float]
) -> dict[tuple[int, str], float]:
    """What the replayed step is shorter without each cause; causes that share work share it."""
    replay = run.replay
    recorded = replay.mean(replay.recorded)
    by_kinds: dict[tuple[int, tuple[int, ...]], list[tuple[int, str]]] = {}
    for rank, name in keys:
        kinds = kinds_of_causes(_KINDS.get(name, (name,)))
        if rank != UNKNOWN and kinds and len(run.peers.ranks(int(run.peers.of_rank[rank]))) > 1:
            by_kinds.setdefault((rank, kinds), []).append((rank, name))
    result = {}
    for (rank, kinds), own in by_kinds.items():
        saved = recorded - replay.mean(replay.run(no_slower(run.peers, [rank], kinds)))
        whole = sum(waited[key] for key in own)
        for key in own:
            result[key] = saved * waited[key] / whole if whole else saved
    return result


def _where(labels: Sequence[Label], label: int) -> str | None:
    """The place that a label names; None for none."""
    return None if label < 0 else _place(labels[label])


def _place(of: Label) -> str | None:
    parts = [of.layer, of.op, of.shape] if of.op else [of.layer]
    text = " ".join(part.rstrip(",") for part in parts if part)
    return " ".join(part for part in (text, of.line) if part) or None


def _counted(record: RankRecord) -> Bools:
    """[steps] Whether means include a step: all, where none is counted."""
    counted = record.steps.is_counted
    return counted if counted.any() else np.ones(len(counted), bool)


def _check_ranks(records: Sequence[RankRecord], recorded: Sequence[int | None]) -> None:
    """Raise an error for a rank in two files, and for files of jobs of different size."""
    first: dict[int, str] = {}
    for record, number in zip(records, recorded, strict=True):
        if number is None:
            continue
        if number in first:
            raise RanksError(
                f"{first[number]}, {record.path}: both are of rank {number}; give one file a rank: "
                "those of one recording, as with --pattern '*step_10*'"
            )
        first[number] = record.path
    sizes: dict[int, str] = {}
    for record in records:
        if record.world_size is not None:
            sizes.setdefault(record.world_size, record.path)
    if len(sizes) > 1:
        (one, path), (other, other_path) = list(sizes.items())[:2]
        raise RanksError(
            f"{path} is of a run of {one} ranks, {other_path} of one of {other} ranks; give the "
            "files of one run"
        )


def _ints(values: Any) -> Ints:
    return Ints(np.array([-1 if value is None else value for value in values], np.int64))


def _signed(values: Int64) -> Ints:
    return Ints(values, np.iinfo(np.int64).min)


def _table(columns: Sequence[Heading], data: dict[str, ColumnData]) -> Table:
    return Table({one.key: data[one.key] for one in columns}, tuple(columns))


def _of_rows(columns: Sequence[Heading], rows: Sequence[dict[str, Any]]) -> Table:
    """A table of rows; times and shares are numbers, None is unknown."""
    data: dict[str, ColumnData] = {}
    for heading in columns:
        values = [row.get(heading.key) for row in rows]
        if any(isinstance(value, str) for value in values) or heading.key in _TEXTS:
            data[heading.key] = text_column(
                [None if value is None else str(value) for value in values]
            )
        elif heading.unit in ("ns", "share", "bytes/s", "bytes") or heading.key in _FLOATS:
            data[heading.key] = Floats(
                np.array([np.nan if value is None else value for value in values], np.float64)
            )
        else:
            data[heading.key] = _ints(values)
    return _table(columns, data)


_TEXTS: Final = frozenset(
    {"group", "cause", "where", "reason", "change", "file", "stage", "part", "ranks_text"}
)
_FLOATS: Final = frozenset({"calls_per_step"})

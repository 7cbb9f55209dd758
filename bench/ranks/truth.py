"""The expected answers of a simulated run, in ns of true time, and the run's files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.ranks import kineto, nsys
from bench.ranks.communications import FIRST_STEP, Instance, communicator, instances, windows
from bench.ranks.faults import AnyFault, Clock, Fault, Missing, Work
from bench.ranks.program import Communication, Compute, Program
from bench.ranks.simulate import NEVER, Run, simulate


@dataclass
class Group:
    """A process group.

    Attributes
    ----------
    name, description : str
        As torch.profiler records them.
    communicator : str
        As fastprof names it in exports of Nsight Systems.
    ranks : list of int
    """

    name: str
    description: str
    communicator: str
    ranks: list[int]


@dataclass
class Step:
    """A step of a rank.

    Attributes
    ----------
    rank : int
    step : int
        From 0.
    begin, end : int
        ns, the first begin and the last end of its GPU work.
    host_begin, host_end : int
        ns, its range on the host.
    compute : int
        ns in compute kernels.
    exposed : int
        ns in communication without a compute kernel at the same time.
    idle : int
        ns between begin and end without GPU work.
    """

    rank: int
    step: int
    begin: int
    end: int
    host_begin: int
    host_end: int
    compute: int
    exposed: int
    idle: int


@dataclass
class Cause:
    """A fault and what it costs.

    Attributes
    ----------
    rank : int
    cause : str
        data loading, slower GPU, uneven work, host, or start.
    operator, layer : str
        Patterns of the work concerned; empty: none in particular.
    injected : list of int
        ns that it adds to the rank, per step.
    saves : float
        How much shorter the mean step of the run is without it, ns.
    saves_in : list of int
        How much shorter each step of the run is, ns; see `Truth.run_ends`.
    """

    rank: int
    cause: str
    operator: str
    layer: str
    injected: list[int]
    saves: float
    saves_in: list[int]


@dataclass
class RankClock:
    """The clock of a rank: it shows offset + (1 + ppm * 1e-6) * true time + a common constant."""

    rank: int
    offset: int
    ppm: float


@dataclass
class Truth:
    """The expected answers.

    Attributes
    ----------
    program, n_ranks, n_steps, seed, first_step
        `first_step`: the number of the first step.
    missing : list of int
        Ranks without a file.
    windows : list of tuple
        Rank, begin and end, ns, of the recordings that lack a part of the run.
    groups, instances, steps, faults, clocks
        `instances` has the true times of all ranks, recorded or not.
    run_ends : list of int
        ns, when the last rank's GPU work of each step ends. The run begins at 0.
    mean_step : float
        Mean ns of a step of the run: the last of `run_ends` over the steps.
    """

    program: str
    n_ranks: int
    n_steps: int
    seed: int
    first_step: int
    missing: list[int]
    windows: list[tuple[int, int, int]]
    groups: list[Group]
    instances: list[Instance]
    steps: list[Step]
    faults: list[Cause]
    clocks: list[RankClock]
    run_ends: list[int]
    mean_step: float

    def write(self, path: Path) -> None:
        """Write the answers as JSON."""
        path.write_text(json.dumps(asdict(self)) + "\n")


def read(path: Path) -> Truth:
    """Read what `Truth.write` wrote."""
    root = json.loads(path.read_text())
    kinds = {"groups": Group, "instances": Instance, "steps": Step, "faults": Cause}
    for key, kind in {**kinds, "clocks": RankClock}.items():
        root[key] = [kind(**each) for each in root[key]]
    root["windows"] = [tuple(window) for window in root["windows"]]
    return Truth(**root)


def truth_of(run: Run, first_step: int = FIRST_STEP) -> Truth:
    """The expected answers of a run; simulates it again without each fault."""
    program, names = run.program, run.program.group_names()
    return Truth(
        program=program.name,
        n_ranks=program.n_ranks,
        n_steps=run.n_steps,
        seed=run.seed,
        first_step=first_step,
        missing=sorted(f.rank for f in run.faults if isinstance(f, Missing)),
        windows=list(windows(run)),
        groups=[
            Group(name, groups.description, f"{communicator(name):#x}", ranks)
            for key, groups in program.groups.items()
            for name, ranks in zip(names[key], groups.ranks.tolist(), strict=True)
        ],
        instances=instances(run, first_step),
        steps=_steps(run),
        faults=_causes(run),
        clocks=[
            RankClock(
                rank,
                sum(f.offset for f in run.faults if isinstance(f, Clock) and f.rank == rank),
                sum(f.ppm for f in run.faults if isinstance(f, Clock) and f.rank == rank),
            )
            for rank in range(program.n_ranks)
        ],
        run_ends=run.run_ends.tolist(),
        mean_step=run.mean_step,
    )


def write(
    directory: Path, program: Program, steps: int = 5, seed: int = 1,
    faults: Sequence[AnyFault] = (), *, form: str = "kineto", metadata: str = "full",
    first_step: int = FIRST_STEP, compress: bool = True,
) -> Truth:  # fmt: skip
    """Simulate a run, write a file per rank and `truth.json`, and return the expected answers.

    Parameters
    ----------
    form : str
        `kineto`, files of torch.profiler, or `nsys`, exports of Nsight Systems.
    metadata : str
        One of `kineto.METADATA`; of files of torch.profiler.
    """
    directory.mkdir(parents=True, exist_ok=True)
    run = simulate(program, steps, seed, faults)
    if form == "nsys":
        nsys.write(run, directory, first_step=first_step)
    else:
        kineto.write(run, directory, metadata, first_step=first_step, compress=compress)
    expected = truth_of(run, first_step)
    expected.write(directory / "truth.json")
    return expected


def _causes(run: Run) -> list[Cause]:
    causes = []
    for i, fault in enumerate(run.faults):
        if not isinstance(fault, Fault):
            continue
        others = [*run.faults[:i], *run.faults[i + 1 :]]
        without = simulate(
            run.source, run.n_steps, run.seed, others, only_communication=True
        )  # fmt: skip
        is_of_work = isinstance(fault, Work)
        causes.append(
            Cause(
                rank=fault.rank,
                cause=fault.cause,
                operator=fault.op if is_of_work else "",
                layer=fault.layer if is_of_work else "",
                injected=run.injected[i].tolist(),
                saves=run.mean_step - without.mean_step,
                saves_in=(_lengths(run) - _lengths(without)).tolist(),
            )
        )
    return causes


def _lengths(run: Run) -> npt.NDArray[np.int64]:
    return np.diff(run.run_ends, prepend=0)


def _steps(run: Run) -> list[Step]:
    kinds = [(isinstance(op, Compute), isinstance(op, Communication)) for op in run.program.step]
    is_compute, is_communication = np.array(kinds).T[:, run.op]
    result = []
    for rank in range(run.program.n_ranks):
        for step in range(run.n_steps):
            there = (run.step == step) & (run.gpu_end[:, rank] != NEVER)
            computes, all_work = (
                np.stack([run.gpu_begin[rows, rank], run.gpu_end[rows, rank]])
                for rows in (there & is_compute, there & (is_compute | is_communication))
            )
            begin, end = int(all_work[0].min()), int(all_work[1].max())
            compute, busy = _union(computes), _union(all_work)
            result.append(
                Step(
                    rank, step, begin, end, int(run.step_begin[step, rank]),
                    int(run.step_end[step, rank]), compute, busy - compute, end - begin - busy,
                )
            )  # fmt: skip
    return result


def _union(spans: npt.NDArray[np.int64]) -> int:
    """Length of the union of intervals int64 [2, n]."""
    begin, end = spans[:, np.argsort(spans[0], kind="stable")]
    reached = np.maximum.accumulate(end)
    begin = np.maximum(begin, np.concatenate([begin[:1], reached[:-1]]))
    return int(np.maximum(end - begin, 0).sum())

"""Random runs of many ranks with injected faults, and the answers of `fastprof ranks` compared."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from bench.ranks import faults, programs, truth
from bench.ranks.program import Collective, Program, Receive
from bench.ranks.simulate import simulate

from fastprof.api.ranks import Ranks
from fastprof.ranks.work import Options, work

NAMES = {
    "data loading": ("data loading",),
    "slower GPU": ("slower GPU",),
    "uneven work": ("uneven work",),
    "host": ("host-bound", "launch-bound", "launch latency"),
    "start": ("late start",),
}
CLEAR = 0.02  # of the step: a fault that saves more must be found
EXACT = 0.05  # of what it saves
ROUNDING = 0.004  # of the step
FACTORS = (0, 0.5, 2)  # of transfers
SAVED = 0.01  # of the step: so exact is what is saved with these


@dataclass(frozen=True)
class Scenario:
    """A run: a program of `bench.ranks.programs` with its sizes, and faults."""

    seed: int
    program: str
    n_ranks: int
    steps: int
    metadata: str
    faults: tuple[Any, ...]

    def made(self) -> Program:
        """The program."""
        result: Program = getattr(programs, self.program)(self.n_ranks)
        return result

    def step_with(self, factor: float) -> float:
        """The mean step of the run, but the first, if transfers take a part of their time, ns."""
        program = self.made()
        step = [
            replace(op, transfer=round(op.transfer * factor))
            if isinstance(op, Collective | Receive)
            else op
            for op in program.step
        ]
        run = simulate(
            replace(program, step=step), steps=self.steps, seed=self.seed, faults=self.faults
        )
        return float(np.diff(run.run_ends)[1:].mean())

    def write(self, directory: Path, form: str = "kineto") -> truth.Truth:
        """Simulate it, and write its files: of torch.profiler, or exports of Nsight Systems."""
        directory.mkdir(parents=True, exist_ok=True)
        return truth.write(
            directory, self.made(), steps=self.steps, seed=self.seed, faults=list(self.faults),
            form=form, metadata=self.metadata,
        )  # fmt: skip


def random_scenario(seed: int) -> Scenario:
    """A program, its ranks, at most two causes of waiting, and clocks."""
    rng = random.Random(seed)
    program = rng.choice(["ddp", "fsdp", "tp_dp", "experts", "pipeline"])
    n_ranks = rng.choice([8, 16]) if program != "ddp" else rng.choice([2, 4, 8])
    steps = rng.randint(4, 7)
    first_stage = range(n_ranks // 4) if program == "pipeline" else range(n_ranks)
    result: list[Any] = []
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        rank = rng.choice([rank for rank in range(n_ranks) if rank not in {f.rank for f in result}])
        kind = rng.choice(["data", "gpu", "rows", "calls", "host", "start"])
        if kind == "data":
            rank = rng.choice(list(first_stage))
            some = tuple(sorted(rng.sample(range(1, steps), rng.randint(1, steps - 1))))
            fault = faults.Data(rank=rank, ns=rng.randint(2, 9) * 1_000_000, steps=some)
            result += [] if rank in {f.rank for f in result} else [fault]
        elif kind == "gpu":
            result.append(faults.Gpu(rank=rank, factor=rng.uniform(1.1, 1.5)))
        elif kind == "rows":
            result.append(faults.Rows(rank=rank, factor=rng.uniform(1.3, 2.0)))
        elif kind == "calls":
            result.append(faults.Calls(rank=rank))
        elif kind == "host":
            result.append(faults.Host(rank=rank, ns=rng.randint(3, 8) * 1_000_000))
        else:
            result.append(faults.Start(rank=rank, ns=rng.randint(10, 30) * 1_000_000))
    for rank in range(n_ranks):
        if rng.random() < 0.15:
            offset = int(rng.uniform(-2e9, 2e9))
            result.append(faults.Clock(rank=rank, offset=offset, ppm=rng.uniform(-50, 50)))
    if rng.random() < 0.2:
        result.append(faults.Window(rank=rng.randrange(n_ranks), first_instances=rng.randint(1, 3)))
    metadata = rng.choice(["full", "host", "names"] if program != "ddp" else
                          ["full", "host", "names", "none"])  # fmt: skip
    return Scenario(seed, program, n_ranks, steps, metadata, tuple(result))


def read(directory: Path) -> Ranks:
    """The ranks of a directory, read in this process."""
    paths = sorted(directory.glob("rank*"))
    return Ranks([work(str(path), Options(ranks=True)) for path in paths])


def compare(run: Ranks, answer: truth.Truth) -> list[str]:
    """What differs from the expected answers, a line each."""
    return [
        *_of_matching(run, answer),
        *_of_clocks(run, answer),
        *_of_waits(run, answer),
        *_of_parts(run),
        *_of_replay(run),
        *_of_causes(run, answer),
    ]


def _of_matching(run: Ranks, answer: truth.Truth) -> list[str]:
    expected = sum(len(_recorded(instance)) > 1 for instance in answer.instances)
    actual = int(run.waits.is_shared.sum())
    result = [] if actual == expected else [f"{actual} instances of {expected}"]
    return result + [f"unmatched: {row}" for row in run.instances.unmatched[:2]]


def _recorded(instance: Any) -> list[int]:
    return list(instance.recorded)


def _of_clocks(run: Ranks, answer: truth.Truth) -> list[str]:
    """Times of ranks, moved to the clock of the run, differ by the same from the true time."""
    true = {clock.rank: clock for clock in answer.clocks}
    errors = []
    for i, number in enumerate(run.numbers):
        clock, record = true[number], run.records[i]
        times = np.array([record.chain.begin, int(record.chain.time[-1])])
        moved = run.clocks.moved(times, np.full(2, i, np.int32))
        real = (times - truth_base() - clock.offset) / (1 + clock.ppm * 1e-6)
        errors.append(moved - truth_base() - real)
    apart = np.array(errors) - np.median(errors)
    most = float(np.abs(apart).max())
    return [f"clocks off by {most:.0f} ns"] if most > 3_000 else []


def truth_base() -> int:
    """The time of the clock at which a simulated run begins, ns."""
    from bench.ranks import kineto

    return int(kineto.BASE)


def _of_waits(run: Ranks, answer: truth.Truth) -> list[str]:
    """Waits in order of rank and time."""
    number = {rank: i for i, rank in enumerate(run.numbers)}
    calls = run.instances.calls
    bad = 0
    most = 0
    for rank, i in number.items():
        own = slice(int(calls.bounds[i]), int(calls.bounds[i + 1]))
        mine = run.waits.wait[own]
        real = [
            (instance.arrival[place], max(instance.arrival[list(instance.ranks).index(other)]
                                          for other in _recorded(instance)))
            for instance in answer.instances
            for place, member in enumerate(instance.ranks)
            if member == rank and rank in _recorded(instance)
        ]  # fmt: skip
        real.sort()
        waits = np.array([last - arrival for arrival, last in real])
        if len(waits) != len(mine):
            return [f"rank {rank}: {len(mine)} calls of {len(waits)}"]
        apart = np.abs(np.sort(waits) - np.sort(mine))
        bad += int(np.count_nonzero(apart > 5_000))
        most = max(most, int(apart.max(initial=0)))
    return [f"{bad} waits differ, by up to {most} ns"] if bad else []


def _of_parts(run: Ranks) -> list[str]:
    off = [
        int(np.abs(times.parts.sum(axis=1) - (times.end - times.start)).max())
        for times in run.step_times
        if len(times.number)
    ]
    # Clocks drift: the parts are as recorded.
    return [f"parts of steps off by {max(off)} ns"] if max(off, default=0) > 5_000 else []


def _of_replay(run: Ranks) -> list[str]:
    result = []
    for rank, times in enumerate(run.step_times):
        lengths = dict(zip(run.step_numbers[rank].tolist(), (times.end - times.start).tolist(),
                           strict=True))  # fmt: skip
        replayed = run.replay.recorded[rank]
        for number, ns in zip(run.replay.numbers.tolist(), replayed.tolist(), strict=True):
            real = lengths.get(number)
            if ns >= 0 and real and abs(ns - real) > 0.01 * real:
                result.append(f"rank {rank} step {number}: replay {ns} of {real} ns")
    return result[:2]


def _of_causes(run: Ranks, answer: truth.Truth) -> list[str]:
    """Findings are the injected faults, and cost what these do."""
    step = run.step_ns
    wanted = {}
    for cause in answer.faults:
        if cause.cause == "start":
            cut = {rank for rank, *_ in answer.windows}
            if max(cause.saves_in) > CLEAR * step * run.n_steps and cause.rank not in cut:
                wanted[cause.rank, "start"] = None
            continue
        saves = float(np.mean(cause.saves_in[1:]))
        if saves > CLEAR * step:
            wanted[cause.rank, cause.cause] = saves
    result, actual = [], {}
    for row in run.findings:
        name = next((name for name, names in NAMES.items() if row.name in names), row.name)
        key = run.number(row.rank), name
        actual[key] = actual.get(key, 0.0) + row.costs
    injected = {(cause.rank, cause.cause) for cause in answer.faults}
    for key, saves in wanted.items():
        if key not in actual:
            result.append(f"not found: {key}, saves {saves}")
        elif saves is not None and abs(actual[key] - saves) > EXACT * saves + ROUNDING * step:
            result.append(f"{key} costs {actual[key]:.0f} ns, not {saves:.0f}, of {step:.0f}")
    for key, costs in actual.items():
        if key not in injected:
            result.append(f"found but not injected: {key}, costs {costs:.0f} of {step:.0f}")
    return result


def _of_what_ifs(run: Ranks, scenario: Scenario) -> list[str]:
    """Steps with faster and slower transfers change as those of the simulation do."""
    recorded, result = scenario.step_with(1), []
    table = run.what_if([f"communication:{factor}" for factor in FACTORS])
    for factor, saved in zip(FACTORS, table["saved_ns"][1:].tolist(), strict=True):
        real = recorded - scenario.step_with(factor)
        if abs(saved - real) > SAVED * recorded:
            result.append(f"communication:{factor} saves {saved:.0f} ns, not {real:.0f}")
    return result


def problems(seed: int, directory: Path, form: str = "kineto") -> list[str]:
    """What differs in a random run."""
    scenario = random_scenario(seed)
    answer = scenario.write(directory, form)
    run = read(directory)
    return compare(run, answer) + _of_what_ifs(run, scenario)


def main(arguments: Sequence[str]) -> None:
    """Compare runs of some seeds: FIRST LAST [FORM]."""
    import shutil
    import tempfile

    n_bad = 0
    first, last = map(int, arguments[:2])
    for seed in range(first, last):
        directory = Path(tempfile.mkdtemp(prefix="fastprof-ranks-"))
        try:
            result = problems(seed, directory, *arguments[2:])
        finally:
            shutil.rmtree(directory)
        if result:
            n_bad += 1
            print(seed, random_scenario(seed), *result, sep="\n   ", flush=True)
    print(f"{n_bad} of {last - first} runs differ")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])

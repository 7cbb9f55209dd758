"""Exports of Nsight Systems of simulated runs: fastprof reads from them what the run did."""

from pathlib import Path

import pytest
from bench.ranks import faults, kineto, programs, truth

import fastprof

PROGRAMS = {
    "ddp": programs.ddp(2, blocks=2, buffers=True),
    "fsdp": programs.fsdp(4, blocks=2),
    "experts": programs.experts(4, size=2, blocks=2),
    "pipeline": programs.pipeline(4, stages=2, batches=3),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_communications_are_those_of_the_run(name: str, tmp_path: Path) -> None:
    given = [faults.Clock(rank=1, offset=3_000_000_000, ppm=20.0)]
    expected = truth.write(tmp_path, PROGRAMS[name], 2, 1, given, form="nsys")
    communicator = {group.name: group.communicator for group in expected.groups}
    size = {group.name: len(group.ranks) for group in expected.groups}
    for rank in range(expected.n_ranks):
        kernels = fastprof.open(tmp_path / f"rank{rank}.sqlite").kernels
        rows = kernels["group_size"] > 0
        names = ("collective", "process_group", "message_bytes", "group_size", "start", "end")
        result = sorted(zip(*(kernels[name][rows].tolist() for name in names), strict=True))
        clock = expected.clocks[rank]
        recorded = [
            (instance.kind, communicator[instance.group], instance.bytes, size[instance.group],
             *(kineto.BASE + clock.offset + ns + round(ns * clock.ppm * 1e-6)
               for ns in (instance.arrival[place], instance.end[place])))
            for instance in expected.instances
            for place, member in enumerate(instance.ranks)
            if member == rank
        ]  # fmt: skip
        assert result == sorted(recorded)


def test_both_forms_say_the_same(tmp_path: Path) -> None:
    program = programs.ddp(2, blocks=2)
    given = [faults.Data(rank=1)]
    for form in ("kineto", "nsys"):
        truth.write(tmp_path / form, program, 3, 1, given, form=form)
    first = fastprof.open(tmp_path / "kineto" / "rank1.json.gz")
    second = fastprof.open(tmp_path / "nsys" / "rank1.sqlite")
    for name in ("start", "end", "op", "layer", "stream", "step", "kernel", "phase"):
        assert first.kernels[name].tolist() == second.kernels[name].tolist()
    for profile in (first, second):
        idle = profile.idle().to_pandas()
        loading = idle[idle["cause"].astype(str) == "data loading"]["ns"].sum()
        assert loading == pytest.approx(2 * 5.3e6, rel=0.02)

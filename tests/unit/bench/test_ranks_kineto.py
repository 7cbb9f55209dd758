"""Files of simulated runs: fastprof reads from them what the run's expected answers say."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.ranks import faults, kineto, programs, truth
from bench.ranks.program import Program
from bench.ranks.truth import Truth

import fastprof

PROGRAMS = {
    "ddp": programs.ddp(4, blocks=2, buffers=True),
    "fsdp": programs.fsdp(4, blocks=3),
    "tp_dp": programs.tp_dp(8, tensor=4, blocks=2),
    "experts": programs.experts(4, size=2, blocks=2),
    "pipeline": programs.pipeline(6, stages=3, batches=4),
}


def events(path: Path) -> list[dict[str, Any]]:
    root = json.loads(gzip.decompress(path.read_bytes()))
    return root["traceEvents"]


def named(path: Path, name: str) -> list[dict[str, Any]]:
    return [event["args"] for event in events(path) if event["name"] == name]


@pytest.fixture(scope="module", params=PROGRAMS)
def written(request: pytest.FixtureRequest, tmp_path_factory: Any) -> tuple[Path, Truth]:
    directory = tmp_path_factory.mktemp("ranks")
    given = [faults.Clock(rank=1, offset=-2_000_000_000, ppm=40.0), faults.Clock(rank=2, ppm=-50.0)]
    return directory, truth.write(directory, PROGRAMS[request.param], 3, 1, given)


def test_communications_are_those_of_the_run(written: tuple[Path, Truth]) -> None:
    directory, expected = written
    about = {group.name: f"{group.name} {group.description}" for group in expected.groups}
    size = {group.name: len(group.ranks) for group in expected.groups}
    for rank in range(expected.n_ranks):
        kernels = fastprof.open(directory / f"rank{rank}.json.gz").kernels
        rows = kernels["group_size"] > 0
        names = ("collective", "process_group", "message_bytes", "group_size", "start", "end")
        result = sorted(zip(*(kernels[name][rows].tolist() for name in names), strict=True))
        clock = expected.clocks[rank]
        recorded = [
            (instance.kind, about[instance.group], instance.bytes, size[instance.group],
             *(kineto.BASE + clock.offset + ns + round(ns * clock.ppm * 1e-6)
               for ns in (instance.arrival[place], instance.end[place])))
            for instance in expected.instances
            for place, member in enumerate(instance.ranks)
            if member == rank
        ]  # fmt: skip
        assert result == sorted(recorded)


def test_numbers_and_members_are_recorded(written: tuple[Path, Truth]) -> None:
    directory, expected = written
    for rank in range(expected.n_ranks):
        for where in ("cpu_op", "kernel"):
            result = [
                (event["args"]["Process Group Name"], event["args"]["Seq"],
                 event["args"]["Process Group Ranks"])
                for event in events(directory / f"rank{rank}.json.gz")
                if event.get("cat") == where and "Seq" in event["args"]
            ]  # fmt: skip
            members = {group.name: str(group.ranks) for group in expected.groups}
            recorded = [
                (instance.group, instance.seq[instance.ranks.index(rank)], members[instance.group])
                for instance in expected.instances
                if rank in instance.ranks
            ]
            assert sorted(result) == sorted(recorded)


def test_streams_and_steps_are_those_of_the_run(written: tuple[Path, Truth]) -> None:
    directory, expected = written
    for rank in range(expected.n_ranks):
        profile = fastprof.open(directory / f"rank{rank}.json.gz")
        kernels = profile.kernels
        for stream in np.unique(kernels["stream"]):
            rows = kernels["stream"] == stream
            order = np.argsort(kernels["start"][rows])
            start, end = (kernels[name][rows][order] for name in ("start", "end"))
            assert (start[1:] >= end[:-1]).all()
        assert sorted(set(kernels["step"].tolist())) == [10, 11, 12]
        of_rank = [step for step in expected.steps if step.rank == rank]
        clock = expected.clocks[rank]
        for step in of_rank:
            rows = kernels["step"] == 10 + step.step
            taken = kernels["end"][rows].max() - kernels["start"][rows].min()
            assert taken == pytest.approx((step.end - step.begin) * (1 + clock.ppm * 1e-6), abs=2)


def test_layers_cover_both_passes(written: tuple[Path, Truth]) -> None:
    directory, _ = written
    table = fastprof.open(directory / "rank0.json.gz").summary(["layer", "phase"]).to_pandas()
    linear = table[table["layer"].astype(str).str.contains("Linear_0")]
    assert set(linear["phase"]) >= {"forward", "backward"}


def test_a_part_of_the_ranks_is_in_a_group() -> None:
    groups = programs.pipeline(6, stages=3).groups["embedding"]
    assert groups.ranks.tolist() == [[0, 4], [1, 5]]


@pytest.fixture
def small() -> Program:
    return programs.ddp(3, blocks=2)


def test_idle_time_is_data_loading(tmp_path: Path, small: Program) -> None:
    truth.write(tmp_path, small, 4, 1, [faults.Data(rank=1)])
    idle = fastprof.open(tmp_path / "rank1.json.gz").idle().to_pandas()
    loading = idle[idle["cause"].astype(str) == "data loading"]["ns"].sum()
    assert loading == pytest.approx(3 * 5.3e6, rel=0.02)  # the first is before the GPU's work


def test_uneven_work_has_other_shapes(tmp_path: Path, small: Program) -> None:
    truth.write(tmp_path, small, 2, 1, [faults.Rows(rank=1, factor=1.5, steps=(1,))])
    for rank, expected in enumerate([[8192] * 8, [8192] * 4 + [12288] * 4, [8192] * 8]):
        result = named(tmp_path / f"rank{rank}.json.gz", "aten::addmm")
        assert [args["Input Dims"][1][0] for args in result] == expected


@pytest.mark.parametrize("metadata", kineto.METADATA)
def test_less_can_be_recorded(tmp_path: Path, small: Program, metadata: str) -> None:
    truth.write(tmp_path, small, 2, metadata=metadata)
    path = tmp_path / "rank0.json.gz"
    on_host = named(path, "record_param_comms")
    on_gpu = [
        event["args"] for event in events(path)
        if event.get("cat") == "kernel" and "nccl" in event["name"]
    ]  # fmt: skip
    assert len(on_host) == len(on_gpu) == 4
    assert all(("Seq" in args) == (metadata in ("full", "host")) for args in on_host)
    assert all(("Seq" in args) == (metadata == "full") for args in on_gpu)
    assert all(("Collective name" in args) == (metadata != "none") for args in on_host + on_gpu)
    assert named(path, "nccl:all_reduce")
    kernels = fastprof.open(path).kernels
    assert kernels["collective"].tolist().count("all_reduce") == 4


def test_unknown_metadata_is_refused(tmp_path: Path, small: Program) -> None:
    with pytest.raises(ValueError, match="expected one of full"):
        truth.write(tmp_path, small, metadata="all")


def test_a_recording_can_lack_communications(tmp_path: Path, small: Program) -> None:
    windows = [
        faults.Window(rank=0, first_instances=1),
        faults.Window(rank=1, last_instances=3),
        faults.Missing(rank=2),
    ]
    expected = truth.write(tmp_path, small, 3, 1, windows)
    assert not (tmp_path / "rank2.json.gz").exists() and expected.missing == [2]
    assert [instance.recorded for instance in expected.instances] == [
        [1], [0, 1], [0, 1], [0], [0], [0],
    ]  # fmt: skip
    for rank, seqs in ((0, [22, 23, 24, 25, 26]), (1, [21, 22, 23])):
        path = tmp_path / f"rank{rank}.json.gz"
        assert [args["Seq"] for args in named(path, "record_param_comms")] == seqs
        fastprof.open(path).steps()


def test_a_recording_can_lack_time(tmp_path: Path, small: Program) -> None:
    whole = truth.write(tmp_path, small, 3)
    end = whole.steps[2].host_end
    lost = [faults.Window(rank=0, first=3_000_000, last=2_000_000)]
    expected = truth.write(tmp_path, small, 3, 1, lost)
    assert expected.windows == [(0, 3_000_000, end + 1 - 2_000_000)]
    for event in events(tmp_path / "rank0.json.gz"):
        if event.get("cat") == "cpu_op":
            assert 3_000_000 <= event["ts"] * 1000 - kineto.BASE <= end - 1_900_000


def test_long_lists_of_ranks_are_cut(tmp_path: Path) -> None:
    given = [faults.Missing(rank=rank) for rank in range(1, 40)]
    truth.write(tmp_path, programs.ddp(40, blocks=1), 1, 1, given)
    root = json.loads(gzip.decompress((tmp_path / "rank0.json.gz").read_bytes()))
    assert root["distributedInfo"]["pg_config"][0]["ranks"] == list(range(40))
    ranks = named(tmp_path / "rank0.json.gz", "record_param_comms")[0]["Process Group Ranks"]
    assert ranks.startswith("[0, 1, ") and ranks.endswith(" 28, ..., 39]")

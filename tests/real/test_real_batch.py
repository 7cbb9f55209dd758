"""fastprof.batch on four real ranks of one step, against their JSON."""

import gzip
import json

import pytest

import fastprof
from support.real_data import real


@pytest.fixture(scope="module")
def paths():
    return [real(f"kineto/dlrm_rank{rank}.json.gz") for rank in range(4)]


@pytest.fixture(scope="module")
def found(paths):
    return fastprof.batch(paths, jobs=2, copies=False)


@pytest.fixture(scope="module")
def kernels(paths):
    """Name, start and duration (ns) of the kernels of each rank, from the files."""
    out = []
    for path in paths:
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        out.append(
            [
                (e["name"], round(e["ts"] * 1000), round(e["dur"] * 1000))
                for e in events
                if e.get("cat") == "kernel"
            ]
        )
    return out


def test_ranks_are_as_the_files_say(found, paths):
    assert found.all_ranks.rule == "recorded"
    assert found.ranks["rank"].tolist() == [0, 1, 2, 3]
    assert found.ranks["file"].tolist() == [str(path) for path in paths]
    assert found.missing == [4, 5, 6, 7]
    assert found.failures == []


def test_kernels_and_gpu_time_are_those_of_the_json(found, kernels):
    times = [sum(duration for *_, duration in rank) for rank in kernels]
    assert found.ranks["kernels"].tolist() == [len(rank) for rank in kernels]
    assert found.ranks["gpu_time"].tolist() == times
    for by in ("op", "layer", "class", "dir", ("mod", "op", "layer", "class", "dir")):
        table = found.table(by)
        assert table["time"].sum() == sum(times)
        assert table["kernels"].sum() == sum(map(len, kernels))


def test_each_row_is_the_sum_over_the_reports_of_single_files(found, paths):
    pandas = pytest.importorskip("pandas")
    frames = [fastprof.open(path, copies=False).to_pandas() for path in paths]
    for rank, frame in enumerate(frames):
        frame["rank"] = rank
    all_rows = pandas.concat(frames)
    for name in ("op", "dir", "mod"):
        times = all_rows.groupby([name, "rank"], observed=True)["sil"].sum().unstack()
        flops = all_rows[all_rows["flops"] >= 0].groupby(name, observed=True)["flops"].sum()
        for row in found.table(name).rows():
            if row[name] is None:
                continue
            expected = times.loc[row[name]].dropna()
            assert row["time"] == expected.sum()
            assert (row["min"], row["max"]) == (expected.min(), expected.max())
            assert row["slowest"] == expected.idxmax()
            assert (row["flops"] or 0) == (flops.get(row[name]) or 0)


def test_waits_are_those_of_the_nccl_kernels(found, kernels):
    for row in found.collectives().rows():
        word = "SendRecv" if row["collective"] == "alltoall_base_" else "AllReduce"
        calls = [
            [duration for name, _, duration in sorted(rank, key=lambda k: k[1]) if word in name]
            for rank in kernels
        ]
        least = [min(call) for call in zip(*calls, strict=True)]
        waits = [sum(rank) - sum(least) for rank in calls]
        assert row["wait"] == round(sum(waits) / 4)
        assert row["waits"] == waits.index(max(waits))
        assert row["last"] == 2
        assert row["ends"] < 10_000  # the clocks of one machine; the calls are the same


def test_all_real_traces_together_fail_at_nothing(paths):
    folder = paths[0].parents[1]
    batch = fastprof.batch([folder / "kineto", folder / "nsys", folder / "nvprof"])
    assert batch.failures == []
    assert batch.table()["time"].sum() == batch.ranks["gpu_time"].sum()
    assert batch.lacking().n_rows > 0
    assert batch.collectives().n_rows > 0

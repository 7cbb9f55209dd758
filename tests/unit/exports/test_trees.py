"""Exports of trees and rows, read back by their consumers: totals are those of the profile."""

import csv
import io
import json
import pstats
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest

import fastprof
from fastprof.errors import ReportError
from fastprof.exports.registry import FORMATS
from support import processes
from support.exports import Export
from support.hypothesis_profiles import some
from support.kineto_files import KinetoFile
from support.real_data import real, traces
from support.sqlite_files import query

VENDOR = Path(__file__).with_name("vendor")
HOSTILE = 'a;b\n</script><img onerror="x">\u2028'
TREES = ("layers", "path", "lines", "stack")
REAL = some(traces("nsys/*.sqlite", "kineto/*.json.gz", "nvprof/*", "pyprof/*.sql*"), 6)


def collapsed(profile, path, **options):
    """The lines of a file of collapsed stacks: (frames, weight)."""
    profile.export(path, to="collapsed", **options)
    lines = path.read_text().splitlines()
    pairs = [line.rpartition(" ") for line in lines]
    return [(stack.split(";"), int(weight)) for stack, _, weight in pairs]


def written(export, path):
    return fastprof.open(export.write(path), copies=True)


@pytest.fixture
def small(tmp_path):
    export = Export()
    for i, name in enumerate(("layer:body", HOSTILE)):
        at = 1000 * i
        export.push_pop(at, at + 900, name, tid=1)
        export.push_pop(at + 10, at + 800, f"aten::mm, seq = {i}", tid=1)
        export.launch(at + 20, at + 30, corr=i + 1, tid=1)
        export.kernel(at + 100, at + 250 + i, corr=i + 1, name=f"gemm{HOSTILE}")
    return written(export, tmp_path / "net.sqlite")


@pytest.mark.parametrize("trace", REAL)
def test_collapsed_stacks_add_up_to_the_gpu_time(trace, tmp_path):
    profile = fastprof.open(real(trace), copies=True)
    total = int(np.maximum(profile.kernels["sil"].filled(0), 0).sum())
    for tree in TREES:
        stacks = collapsed(profile, tmp_path / "net.folded", stack=tree)
        assert sum(weight for _, weight in stacks) == total, tree
        assert {frames[0] for frames, _ in stacks} <= {"forward", "backward", "other"}
        assert len({tuple(frames) for frames, _ in stacks}) == len(stacks), tree


@pytest.mark.parametrize(
    "trace", ["kineto/resnet18_mi300_full.json.gz", "pyprof/lm_v100_nvprof.sql"]
)
def test_directions_are_roots(trace, tmp_path):
    profile = fastprof.open(real(trace), copies=True)
    result = {"forward": 0, "backward": 0}
    for frames, weight in collapsed(profile, tmp_path / "net.folded"):
        result[frames[0]] = result.get(frames[0], 0) + weight
    total = profile.layers().total
    assert result["forward"] == total["forward_ns"] > 0
    assert result["backward"] == total["backward_ns"] > 0


def test_weights_are_flops_bytes_and_lost_time(tmp_path):
    profile = fastprof.open(real("kineto/owlv2_h100.json.gz"), copies=True)
    for weight in ("flops", "bytes"):
        stacks = collapsed(profile, tmp_path / "net.folded", weight=weight)
        assert sum(each for _, each in stacks) == int(profile.kernels[weight].sum())
    lost = sum(each for _, each in collapsed(profile, tmp_path / "net.folded", weight="lost"))
    total = profile.roofline().total["lost_ns"]
    assert lost == pytest.approx(total, rel=1e-6)


def test_a_weight_that_nothing_has_is_an_error(tmp_path):
    profile = written(
        Export().launch(0, 5, corr=1, tid=1).kernel(10, 20, corr=1), tmp_path / "net.sqlite"
    )
    with pytest.raises(ReportError, match="--weight flops: no operator"):
        profile.export(tmp_path / "x", to="collapsed", weight="flops")
    assert not (tmp_path / "x").exists()


def test_hostile_names_stay_one_frame(small, tmp_path):
    stacks = collapsed(small, tmp_path / "net.folded", stack="path")
    assert sum(weight for _, weight in stacks) == 301
    depths = {len(frames) for frames, _ in stacks}
    assert max(depths) == 4  # direction, range, operator, kernel
    assert all("\n" not in frame for frames, _ in stacks for frame in frames)


@pytest.mark.parametrize("trace", REAL)
def test_speedscope_files_have_the_schema_and_the_gpu_time(trace, tmp_path):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = json.loads((VENDOR / "speedscope-1.25.0" / "file-format-schema.json").read_text())
    profile = fastprof.open(real(trace), copies=True)
    profile.export(tmp_path / "net.json", to="speedscope")
    result = json.loads((tmp_path / "net.json").read_text())
    jsonschema.validate(result, schema)
    total = int(np.maximum(profile.kernels["sil"].filled(0), 0).sum())
    assert sum(sum(profile["weights"]) for profile in result["profiles"]) == total
    n_frames = len(result["shared"]["frames"])
    for each in result["profiles"]:
        assert each["endValue"] == sum(each["weights"])
        assert all(0 <= frame < n_frames for sample in each["samples"] for frame in sample)
    if len(profile.devices) > 1:
        assert len(result["profiles"]) == len(profile.devices)
        device = profile.kernels["device"]
        for number, each in zip(sorted(profile.devices), result["profiles"], strict=True):
            assert sum(each["weights"]) == int(profile.kernels["sil"][device == number].sum())


@pytest.mark.parametrize("where", [{"device": "1"}, ["device=1"], "device=1", ["device!=0"]])
def test_speedscope_has_the_selected_kernels_of_each_gpu(where, tmp_path):
    trace = KinetoFile()
    for number, device in enumerate((0, 0, 1), 1):
        trace.launch(100 * number, 100 * number + 5, number)
        trace.kernel(1_000 * number, 1_000 * number + 10 * number, number, device=device)
    profile = fastprof.open(trace.write(tmp_path / "two.json"))
    assert set(profile.devices) == {0, 1}
    profile.export(tmp_path / "net.json", to="speedscope", where=where)
    result = json.loads((tmp_path / "net.json").read_text())
    assert [sum(profile["weights"]) for profile in result["profiles"]] == [0, 30]


def test_speedscope_frames_have_files_and_lines(tmp_path):
    profile = fastprof.open(real("kineto/owlv2_h100.json.gz"), copies=True)
    profile.export(tmp_path / "net.json", to="speedscope", stack="stack")
    frames = json.loads((tmp_path / "net.json").read_text())["shared"]["frames"]
    places = {(frame.get("file"), frame.get("line")) for frame in frames}
    assert ("multiprocessing/process.py", 314) in places


def test_pstats_have_the_gpu_time_by_function(tmp_path):
    profile = fastprof.open(real("kineto/owlv2_h100.json.gz"), copies=True)
    path = tmp_path / "net.pstats"
    profile.export(path, to="pstats")
    stats = pstats.Stats(str(path))
    total = profile.kernels["sil"].sum() / 1e9
    assert stats.total_tt == pytest.approx(total)
    result = {key[2]: value for key, value in stats.stats.items()}
    assert result["spawn_main"][3] == pytest.approx(total)  # cumulative: it encloses everything
    assert result["spawn_main"][2] == 0
    for _, _, _, cumulative, callers in stats.stats.values():
        assert sum(caller[3] for caller in callers.values()) <= cumulative * 1.0001
    shown = processes.python("-m", "pstats", str(path), input="sort cumtime\nstats 3\n", check=True)
    assert "spawn_main" in shown.stdout


def test_gprof2dot_reads_pstats(tmp_path):
    pytest.importorskip("gprof2dot", reason="gprof2dot is not installed")
    profile = fastprof.open(real("kineto/owlv2_h100.json.gz"), copies=True)
    profile.export(tmp_path / "net.pstats", to="pstats")
    words = [sys.executable, "-m", "gprof2dot", "-f", "pstats", str(tmp_path / "net.pstats")]
    graph = processes.ran(words, check=True).stdout
    assert graph.startswith("digraph") and "run_on_input" in graph


def test_pstats_without_call_stacks_are_an_error(tmp_path):
    profile = fastprof.open(real("nsys/no_nvtx_rtx3090_nsys2025.sqlite"), copies=True)
    with pytest.raises(ReportError, match="no call stacks recorded"):
        profile.export(tmp_path / "net.pstats", to="pstats")


@pytest.mark.parametrize(
    "trace",
    [
        "kineto/owlv2_h100.json.gz",
        "nsys/emit_nvtx_2gpu_nsys2026.sqlite",
        "pyprof/lm_v100_nvprof.sql",
        "nsys/no_nvtx_rtx3090_nsys2025.sqlite",
    ],
)
def test_a_database_has_all_kernels_and_reports(trace, tmp_path):
    profile = fastprof.open(real(trace), copies=True)
    path = tmp_path / "net.sqlite"
    profile.export(path, to="sqlite")
    database = sqlite3.connect(path)
    database.row_factory = sqlite3.Row
    rows = [dict(row) for row in database.execute("SELECT * FROM kernels ORDER BY idx")]
    assert len(rows) == len(profile)
    for row, expected in zip(rows, profile.rows(), strict=True):
        for name in (
            "sil",
            "start",
            "stream",
            "op",
            "dir",
            "kernel",
            "flops",
            "step",
            "correlation",
        ):
            assert row[name] == expected[name], name
        assert (row["grid_x"], row["grid_z"]) == (
            (None, None) if expected["grid"] is None else expected["grid"][::2]
        )
    for name in ("layers", "summary", "copies"):
        table = profile.report(name)
        assert [tuple(row) for row in database.execute(f"SELECT * FROM {name}")] == [
            tuple(json.dumps(v) if isinstance(v, tuple) else v for v in row.values())
            for row in table.rows()
        ]
    (n_kernels,) = database.execute("SELECT sum(Instances) FROM cuda_gpu_kern_sum").fetchone()
    assert n_kernels == sum(row["kind"] == "kernel" for row in rows)
    facts = dict(database.execute("SELECT name, value FROM capture"))
    assert facts["file"] == str(real(trace)) and facts["fastprof"] == fastprof.__version__
    assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    database.close()


def test_a_database_of_hostile_names(small, tmp_path):
    small.export(tmp_path / "out.sqlite", to="sqlite")
    names = set(query(tmp_path / "out.sqlite", "SELECT name FROM kernels"))
    assert names == {(f"gemm{HOSTILE}".encode("utf-8", "replace").decode(),)}


def test_rows_of_kernels_and_of_reports(small, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    small.export(tmp_path / "k.csv", to="csv")
    text = (tmp_path / "k.csv").read_bytes().decode("utf-8", "surrogateescape")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [int(row["Sil(ns)"]) for row in rows] == [150, 151]
    small.export(tmp_path / "k.parquet", to="parquet")
    assert parquet.read_table(tmp_path / "k.parquet")["sil"].to_pylist() == [150, 151]
    small.export(tmp_path / "s.csv", to="csv", table="summary")
    with open(tmp_path / "s.csv", newline="", errors="surrogateescape") as file:
        assert sum(int(row["gpu_ns"]) for row in csv.DictReader(file)) == 301
    small.export(tmp_path / "s.parquet", to="parquet", table="summary")
    assert sum(parquet.read_table(tmp_path / "s.parquet")["gpu_ns"].to_pylist()) == 301
    with pytest.raises(ReportError, match="sumary"):
        small.export(tmp_path / "x.csv", to="csv", table="sumary")
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_an_empty_capture_is_exported(name, tmp_path):
    profile = written(Export(), tmp_path / "empty.sqlite")
    out = tmp_path / f"out{FORMATS[name].suffix}"
    profile.export(out, to=name)
    assert out.stat().st_size >= 0


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_an_unwritable_file_is_an_error_and_leaves_nothing(name, small, tmp_path):
    with pytest.raises(OSError, match="no such folder"):
        small.export(tmp_path / "no such folder" / "out", to=name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.sqlite"]

"""`fastprof export`: targets, options, messages, atomic files."""

import gzip
import json
import os
from dataclasses import replace

import pytest
from bench.ranks import programs, truth

from fastprof.analysis.options import WHERE
from fastprof.cli import main
from fastprof.exports.registry import FORMATS
from support import perfetto_traces
from support.commands import run
from support.exports import Export


@pytest.fixture
def file(tmp_path):
    export = Export().launch(0, 5, corr=1, tid=1).kernel(10, 20, corr=1)
    return export.write(tmp_path / "net.sqlite")


def failed(done, code, *words):
    message = done.stderr.decode()
    assert done.returncode == code, message
    assert all(word in message for word in words), message
    return message


def test_a_file_is_written(file, tmp_path):
    out = tmp_path / "net.pftrace"
    done = run("export", file, "--to", "perfetto", "-o", out)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [each.name for each in perfetto_traces.read(out).on("GPU")] == ["sgemm"]


def test_output_is_compressed_by_name_and_repeatable(file, tmp_path):
    out = tmp_path / "net.json.gz"
    assert run("export", file, "--to", "chrome", "-o", out).returncode == 0
    first = out.read_bytes()
    assert run("export", file, "--to", "chrome", "-o", out).returncode == 0
    assert out.read_bytes() == first
    assert json.loads(gzip.decompress(first))["schemaVersion"] == 1


@pytest.mark.parametrize("words", [[], ["-o", "-"]])
def test_stdout_gets_the_same_bytes(file, tmp_path, words):
    out = tmp_path / "net.json"
    assert run("export", file, "--to", "chrome", "-o", out).returncode == 0
    done = run("export", file, "--to", "chrome", *words)
    assert done.returncode == 0
    assert done.stdout == out.read_bytes()


def test_usage_errors(file, tmp_path):
    out = tmp_path / "x"
    failed(run("export", file, "-o", out), 2, "the following arguments are required: --to")
    failed(run("export", file, "--to", "chrom", "-o", out), 2, "did you mean chrome?")
    done = run("export", file, "--to", "chrome", "--where", "colour=red", "-o", out)
    failed(done, 2, "unknown key 'colour'")
    assert not out.exists()


def test_options_of_other_formats_are_usage_errors(file, tmp_path, monkeypatch, capsys):
    plain = replace(FORMATS["chrome"], name="plain", options=(WHERE,))
    monkeypatch.setitem(FORMATS, "plain", plain)
    with pytest.raises(SystemExit):
        main(["export", str(file), "--to", "plain", "--steps", "graph", "-o", str(tmp_path / "x")])
    message = "--steps does not apply to plain; its options: --where"
    assert message in capsys.readouterr().err


def test_unwritable_outputs_leave_nothing(file, tmp_path):
    failed(run("export", file, "--to", "perfetto", "-o", tmp_path / "no" / "x"), 1,
           "cannot be written: No such file or directory")  # fmt: skip
    before = sorted(os.listdir(tmp_path))
    out = tmp_path / "x.pftrace"
    failed(run("export", file, "--to", "perfetto", "-o", out, file_size=100), 1, "File too large")
    assert sorted(os.listdir(tmp_path)) == before


def test_bad_input_is_reported(tmp_path):
    file = tmp_path / "net.sqlite"
    file.write_bytes(b"nothing")
    out = tmp_path / "x"
    failed(run("export", file, "--to", "perfetto", "-o", out), 1, str(file))
    file.write_text(repr({"kShortName": "sgemm", "kDuration": 5}) + "\n")
    failed(run("export", file, "--to", "perfetto", "-o", out), 1, "dict lines contain no times")
    assert not out.exists()


@pytest.fixture
def ranks(tmp_path):
    """The files of two ranks in a directory."""
    folder = tmp_path / "ranks"
    truth.write(folder, programs.ddp(2), 2, 1, [])
    (folder / "truth.json").unlink()
    return folder


def test_a_directory_is_a_run(ranks, tmp_path):
    out = tmp_path / "run.pftrace"
    assert run("export", ranks, "--to", "perfetto", "-o", out).returncode == 0
    trace = perfetto_traces.read(out)
    assert {trace.path(slice_.track)[0] for slice_ in trace.slices} == {"rank 0", "rank 1"}
    assert trace.on("GPU") and trace.flows
    files = sorted(ranks.iterdir())
    done = run("export", *files, "--to", "perfetto", "--no-kernels", "-o", tmp_path / "x.pftrace")
    assert done.returncode == 0
    trace = perfetto_traces.read(tmp_path / "x.pftrace")
    assert not trace.on("GPU") and len(trace.on("time line")) > 0


def test_usage_errors_of_runs(ranks, tmp_path):
    file, out = ranks / "rank0.json.gz", tmp_path / "x"
    failed(run("export", ranks, "--to", "chrome", "-o", out), 2,
           "only perfetto has the ranks of a run; give one FILE for chrome")  # fmt: skip
    failed(run("export", file, "--to", "perfetto", "--no-kernels", "-o", out), 2,
           "--no-kernels needs a run")  # fmt: skip
    failed(run("export", ranks, "--to", "perfetto", "--trim", "x", "-o", out), 2,
           "--trim needs one FILE")  # fmt: skip
    failed(run("export", ranks, "--to", "perfetto", "-o", file), 1, "is an input")
    assert not out.exists()


def test_other_formats_get_the_first_rank_of_a_run_directory(ranks, tmp_path):
    for rank in range(2):
        (ranks / f"rank{rank}.json.gz").rename(ranks / f"trace.rank{rank}.json.gz")
    (ranks / "run.json").write_text("{}")
    out = tmp_path / "x.json"
    done = run("export", ranks, "--to", "chrome", "-o", out)
    assert done.returncode == 0
    assert b"trace.rank0.json.gz; all ranks: --to perfetto" in done.stderr
    assert json.loads(out.read_bytes())["distributedInfo"]["rank"] == 0
    assert run("export", ranks, "--to", "perfetto", "-o", out).returncode == 0
    trace = perfetto_traces.read(out)
    assert {trace.path(slice_.track)[0] for slice_ in trace.slices} == {"rank 0", "rank 1"}

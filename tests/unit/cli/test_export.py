"""`fastprof export`: targets, options, messages, atomic files."""

import gzip
import json
import os
from dataclasses import replace

import pytest

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

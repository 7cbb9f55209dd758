"""Small files that expand: snapshots that repeat lists, and archives that inflate without end."""

import gzip
import pickle

import pytest

from fastprof.errors import NotEnoughMemoryError
from fastprof.readers import json_text, torch_snapshot
from fastprof.readers.kineto import event_columns
from support.commands import run
from support.kineto_files import KinetoFile
from support.memory_snapshots import Snapshot, frames

N = 3000


def repeated_blocks(path):
    """A list of blocks that refers to one block, in segments that are one segment."""
    blocks = [{"size": 512, "state": "active_allocated"}] * N
    segments = [{"address": 4096, "total_size": 1 << 20, "blocks": blocks}] * N
    path.write_bytes(pickle.dumps({"segments": segments, "device_traces": []}))
    return path


def repeated_events(path):
    """Many devices whose events are one list."""
    trace = [{"action": "alloc", "addr": 1, "size": 512}] * N
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [trace] * N}))
    return path


def repeated_text(path):
    """Distinct frames of one file with a very long name."""
    file = "f" * (40 * N)
    stack = [{"filename": file, "line": i, "name": "a"} for i in range(N)]
    trace = [{"action": "alloc", "addr": 1, "size": 512, "frames": stack}]
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [trace]}))
    return path


@pytest.mark.parametrize("write", [repeated_blocks, repeated_events, repeated_text])
def test_a_snapshot_that_repeats_its_lists_is_refused(write, tmp_path):
    path = write(tmp_path / "bomb.pickle")
    assert path.stat().st_size < 400_000
    with pytest.raises(NotEnoughMemoryError, match=r"expected at most 64\.0M .*--memory"):
        torch_snapshot.read(path)


def test_the_command_says_so_in_one_line_and_memory_raises_the_bound(tmp_path):
    path = repeated_blocks(tmp_path / "bomb.pickle")
    refused = run("memory", path)
    assert refused.returncode == 1
    [line] = refused.stderr.decode().splitlines()
    assert "bomb.pickle: expected at most" in line
    assert "--memory" in line
    low = run("memory", "--memory", "1M", path)
    assert low.returncode == 1
    assert b"at most 1.0M" in low.stderr
    wrong = run("memory", "--memory", "much", path)
    assert wrong.returncode == 2
    assert b"expected a size in bytes" in wrong.stderr


def test_a_snapshot_that_shares_its_stacks_is_read(tmp_path):
    snapshot, stack = Snapshot(), frames("train.py:7 main", "net.py:3 forward")
    for _ in range(2000):
        snapshot.allocate(1000, stack)
    result = torch_snapshot.read(snapshot.write(tmp_path / "ordinary.pickle"))
    assert len(result.stacks) == 1


def test_an_archive_that_inflates_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(json_text, "ALWAYS_INFLATED", 8 << 20)
    text = KinetoFile().kernel(10, 20, 1).text().encode()
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(text[:-1] + b" " * (32 << 20) + text[-1:]))
    with pytest.raises(NotEnoughMemoryError, match=r"bomb\.json\.gz: expected at most 8\.0M"):
        event_columns.read(path, str(path))
    monkeypatch.setenv("FASTPROF_MEMORY", "1G")
    assert event_columns.read(path, str(path)).is_whole

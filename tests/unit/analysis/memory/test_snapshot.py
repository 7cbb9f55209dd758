"""`memory` of snapshots: rows, states, history; files that are damaged or not plain data."""

import json
import os
import pickle
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof._core import _plain
from support import torch_server
from support.commands import one_line, run
from support.memory_snapshots import BASE, SEGMENT, Snapshot, frames

PROGRAM = Path(__file__).with_name("memory_viz.py")
MODULE = "/opt/site-packages/torch/nn/modules/module.py:1501 _call_impl"
MAIN = "/home/me/train.py:20 main"
FORWARD = frames(MAIN, MODULE, "/home/me/model.py:9 forward")
OPTIMIZER = frames("/home/me/train.py:22 main", "/opt/site-packages/torch/optim/adam.py:90 step")
BACKWARD = frames("/home/me/train.py:21 main", "/opt/site-packages/torch/_tensor.py:500 backward")
CPP = [{"filename": "??", "line": 0, "name": "at::empty_cuda(long)"}]


def training() -> Snapshot:
    """Two activations, a gradient, state of the optimizer; one activation is freed."""
    snapshot = Snapshot()
    first = snapshot.allocate(1_000_000, CPP + FORWARD)
    snapshot.allocate(600, FORWARD)
    snapshot.allocate(2000, BACKWARD)
    snapshot.free(first)
    snapshot.allocate(3000, OPTIMIZER)
    snapshot.free(snapshot.allocate(100, OPTIMIZER))
    return snapshot


def by_key(table: Any, key: str, *columns: str) -> dict[Any, Any]:
    columns = columns or ("at_peak_bytes", "allocated_bytes", "allocations", "at_end_bytes")
    return {row[key]: tuple(row[name] for name in columns) for row in table.rows()}


def test_rows_are_the_lines_that_allocate(tmp_path: Path) -> None:
    table = fastprof.memory_snapshot(training().write(tmp_path / "s.pickle"))
    assert by_key(table, "line") == {
        "/home/me/model.py:9 forward": (1_000_600, 1_000_600, 2, 600),
        "/home/me/train.py:21 main": (2000, 2000, 1, 2000),
        "/home/me/train.py:22 main": (0, 3100, 2, 3000),
    }
    (result,) = table.facts["memories"]
    assert result["peak_bytes"] == 1_002_600
    assert result["end_bytes"] == 5600
    assert result["state"] == {
        "segments": 1,
        "reserved_bytes": SEGMENT,
        "allocated_bytes": 1024 + 2048 + 3072,
        "rounding_bytes": 424 + 48 + 72,
        "pending_bytes": 0,
        "inactive_bytes": SEGMENT - 6144,
        "releasable_bytes": 0,
        "largest_free_bytes": SEGMENT - 1_000_448 - 3072,
    }
    assert result["reserved_at_peak_bytes"] == SEGMENT


def test_categories_follow_the_stacks(tmp_path: Path) -> None:
    path = training().write(tmp_path / "s.pickle")
    assert by_key(fastprof.memory_snapshot(path, "category"), "category", "allocations") == {
        "activations": (2,),
        "gradients": (1,),
        "optimizer state": (1,),
        "temporary": (1,),
    }


@pytest.mark.parametrize("forgotten", [1, 2, 3, 5, 7, 99])
def test_a_history_that_begins_late_keeps_the_live_blocks(forgotten: int, tmp_path: Path) -> None:
    snapshot = training()
    snapshot.forget(forgotten)
    table = fastprof.memory_snapshot(snapshot.write(tmp_path / "s.pickle"))
    assert table.total["at_end_bytes"] == 5600
    assert by_key(table, "line", "at_end_bytes")["/home/me/model.py:9 forward"] == (600,)
    is_freed_in_history = forgotten in (2, 3, 5)
    (result,) = table.facts["memories"]
    # The block of 1 MB is allocated by the second event and freed by the fifth and sixth.
    assert (result["peak_bytes"] > 1_000_000) == (forgotten < 5)
    rows = by_key(table, "line", "at_peak_bytes")
    assert ("(earlier)" in rows) == (is_freed_in_history and forgotten < 5)


def test_a_history_without_live_memory_and_an_empty_snapshot(tmp_path: Path) -> None:
    empty = Snapshot().write(tmp_path / "empty.pickle")
    table = fastprof.memory_snapshot(empty)
    assert table.n_rows == 0
    assert table.notes == ("no live memory and no history",)
    assert run("memory", empty).returncode == 0


def test_blocks_that_wait_for_a_stream_are_not_allocated(tmp_path: Path) -> None:
    snapshot = Snapshot()
    snapshot.free(snapshot.allocate(1024, FORWARD), is_completed=False)
    snapshot.allocate(512, FORWARD)
    (result,) = fastprof.memory_snapshot(snapshot.write(tmp_path / "s.pickle")).facts["memories"]
    assert (result["peak_bytes"], result["end_bytes"]) == (1024, 512)
    assert result["state"]["pending_bytes"] == 1024


def test_out_of_memory_and_devices(tmp_path: Path) -> None:
    snapshot = Snapshot(device=1, devices=3)
    snapshot.allocate(512)
    for size in (8 << 30, 9 << 30, 10 << 30, 11 << 30):
        snapshot.fail(size, 1 << 20)
    path = snapshot.write(tmp_path / "s.pickle")
    table = fastprof.memory_snapshot(path, device=1)
    (result,) = table.facts["memories"]
    assert result["memory"] == "GPU 1"
    assert [each["requested_bytes"] for each in result["out_of_memory"]] == [
        n << 30 for n in (8, 9, 10, 11)
    ]
    assert result["out_of_memory"][0]["free_bytes"] == 1 << 20
    assert any(line.startswith("out of memory: 8.59 GB requested") for line in table.lead)
    assert "1 more out-of-memory events" in table.lead
    assert by_key(table, "size", "at_end_bytes") == {512: (512,)}  # without stacks
    with pytest.raises(fastprof.ReportError, match=r"a GPU of the snapshot \(1\), found 2"):
        fastprof.memory_snapshot(path, device=2)


def test_snapshots_of_older_versions(tmp_path: Path) -> None:
    """torch 2.0: a history of requests in each block; torch 1: a list of segments."""
    request = {"addr": BASE, "real_size": 700, "frames": FORWARD}
    block = {"size": 1024, "state": "active_allocated", "history": [request]}
    rest = {"size": SEGMENT - 1024, "state": "inactive"}
    segment = {"device": 0, "address": BASE, "total_size": SEGMENT, "stream": 0,
               "blocks": [block, rest]}  # fmt: skip
    path = tmp_path / "s.pickle"
    for data in ([segment], {"segments": [segment], "device_traces": []}):
        path.write_bytes(pickle.dumps(data))
        table = fastprof.memory_snapshot(path)
        assert by_key(table, "line", "at_end_bytes") == {"/home/me/model.py:9 forward": (700,)}
        assert any("no history" in note for note in table.notes)


def test_recorded_categories_are_used(tmp_path: Path) -> None:
    """Those of torch.cuda._memory_viz._profile_to_snapshot."""
    snapshot = training()
    for event in snapshot.traces[0]:
        event["category"] = "parameter"
    table = fastprof.memory_snapshot(snapshot.write(tmp_path / "s.pickle"), "category")
    assert by_key(table, "category", "allocations") == {"parameter": (5,)}


def test_torch_reads_the_same_totals(tmp_path: Path) -> None:
    """torch's own tables of the same file, by torch.cuda._memory_viz."""
    snapshot, chance, live = Snapshot(), random.Random(5), []
    stacks = [FORWARD, BACKWARD, OPTIMIZER, frames(MAIN)]
    for _ in range(300):
        if live and chance.random() < 0.45:
            snapshot.free(live.pop(chance.randrange(len(live))), is_completed=chance.random() < 0.9)
        else:
            live.append(snapshot.allocate(chance.randrange(1, 1 << 20), chance.choice(stacks)))
    path = snapshot.write(tmp_path / "s.pickle")
    torch_server.run(PROGRAM, path, tmp_path / "torch.json", check=True)
    theirs = json.loads((tmp_path / "torch.json").read_text())
    table = fastprof.memory_snapshot(path, "line")
    (result,) = table.facts["memories"]
    assert result["end_bytes"] == theirs["allocated"]
    assert result["state"]["reserved_bytes"] == theirs["reserved"]
    assert result["state"]["segments"] == theirs["segments"]
    lines: Counter[str] = Counter()
    for stack, size in theirs["stacks"]:
        own = [each for each in stack if each.startswith(("train.py", "model.py"))][-1]
        lines[own] += size
    ours = {
        re.sub(r".*/(.*):(\d+) (.*)", r"\1:\2:\3", row["line"]): row["at_end_bytes"]
        for row in table.rows()
        if row["at_end_bytes"]
    }
    assert ours == lines
    level = peak = 0
    for event in snapshot.traces[0]:
        level += {"alloc": 1, "free_requested": -1}.get(event["action"], 0) * event["size"]
        peak = max(peak, level)
    assert result["peak_bytes"] == peak


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_the_command_reads_every_protocol(protocol: int, tmp_path: Path) -> None:
    path = training().write(tmp_path / "s.pickle", protocol)
    result = json.loads(run("memory", path, "--json").stdout)
    assert result["file"] == str(path)
    assert result == json.loads(fastprof.memory_snapshot(path).to_json())
    text = run(
        "memory", path, "--by", "file", "--where", "line=*model*", "-w", "80"
    ).stdout.decode()
    assert "GPU 0: peak 1.003 MB requested" in text
    assert max(map(len, text.splitlines())) <= 80


def test_other_commands_name_the_command_for_snapshots(tmp_path: Path) -> None:
    path = training().write(tmp_path / "s.pickle")
    for words in (["summary"], ["info"], ["parse"], ["ranges"], []):
        message = one_line(run(*words, path))
        assert "expected a trace, found a pickle" in message
        assert "fastprof memory FILE" in message
    with pytest.raises(fastprof.BadInputError, match=r"fastprof\.memory_snapshot"):
        fastprof.open(path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--by", "op"], "unknown key of a memory snapshot 'op'"),
        (["--steps", "none"], "a memory snapshot, which has no steps"),
        (["--device", "cpu"], "expected gpu or a GPU of the snapshot (0), found 'cpu'"),
    ],
)
def test_options_of_traces_are_usage_errors(words: list[str], message: str, tmp_path: Path) -> None:
    done = run("memory", training().write(tmp_path / "s.pickle"), *words)
    assert done.returncode == 2
    assert message in done.stderr.decode().splitlines()[-1]


class Calls:
    """An object whose reading calls a function."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("protocol", [2, 4])
def test_nothing_in_a_file_is_executed(protocol: int, tmp_path: Path) -> None:
    path, marker = tmp_path / "s.pickle", tmp_path / "executed"
    data = {**training().data(), "allocator_settings": Calls(marker)}
    path.write_bytes(pickle.dumps(data, protocol))
    message = one_line(run("memory", path))
    assert "refused, since the file imports" in message
    assert not marker.exists()
    pickle.loads(path.read_bytes())  # which would do it
    assert marker.exists()


def proto(*codes: bytes) -> bytes:
    return b"\x80\x04" + b"".join(codes)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (proto(b"cos\nsystem\n"), "imports an object"),
        (proto(b"\x8c\x02os\x8c\x06system\x93"), "imports 'os.system'"),
        (proto(b"(ios\nsystem\n"), "creates an object"),
        (proto(b"}}b"), "sets the state of an object"),
        (proto(b"K\x01Q"), "refers to an external object"),
        (proto(b"P1\n"), "refers to an external object"),
        (proto(b"\x82\x01"), "imports an object"),
        (proto(b"\x8d" + b"\xff" * 8), "expected 18446744073709551615 more bytes"),
        (proto(b"X\xff\xff\xff\x7f"), "expected 2147483647 more bytes"),
        (proto(b"\x8b\x00\x00\x00\x40"), "an integer of 1073741824 bytes"),
        (proto(b"]r\xff\xff\xff\xff"), "reference 4294967295, expected at most 0"),
        (proto(b"h\x05"), "a reference to no earlier value"),
        (proto(b"(" * 100), "nested deeper than 64"),
        (proto(b"}K\x01K\x02s."), "a key of a dict that is no text"),
        (proto(b"a"), "an instruction without a value"),
        (proto(b"K\x01K\x02."), "expected one value at the end, found 2"),
        (proto(b"(."), "expected one value at the end, found 0"),
        (proto(b"u"), "the end of a container without a start"),
        (proto(b"K\x01(K\x02e."), "items outside a list"),
        (proto(b"](K\x02u."), "pairs of key and value outside a dict"),
        (proto(b"\x8c\x01\xff."), "a text that is not UTF-8"),
        (proto(b"\x8f"), "unknown instruction 0x8f"),
        (b"\x80\x09.", "protocol 9, expected 2 to 5"),
        (proto(b"K\x01."), "found 'int'"),
        (proto(b"}\x8c\x03keyK\x01s."), "found 'keys key'"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_in_one_line(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(fastprof.BadInputError, match=re.escape(message)):
        value = _plain.load(data, "s.pickle")
        path = tmp_path / "s.pickle"
        path.write_bytes(pickle.dumps(value))
        fastprof.memory_snapshot(path)


def test_every_cut_and_most_damage_is_refused(tmp_path: Path) -> None:
    content = training().write(tmp_path / "s.pickle").read_bytes()
    for n in range(2, len(content)):
        with pytest.raises(fastprof.BadInputError):
            _plain.load(content[:n], "s.pickle")
    chance = random.Random(1)
    path = tmp_path / "damaged.pickle"
    for _ in range(2000):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(2, len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            fastprof.memory_snapshot(path).text()
        except fastprof.BadInputError as error:
            assert "\n" not in str(error)


def test_plain_data_is_read_as_it_was_written() -> None:
    value = {"a": [1, -2, 300, 1 << 40, -(1 << 63), (1 << 64) - 1, True, None, 1.5, b"x"],
             "b": {"c": ((), (1,), (1, 2), (1, 2, 3), tuple(range(9)))}, "é\ud800": []}  # fmt: skip
    value["shared"] = value["b"]
    for protocol in (3, 4, 5):
        result = _plain.load(pickle.dumps(value, protocol), "x")
        assert result == value
        assert result["shared"] is result["b"]


def test_deep_and_cyclic_data_is_no_problem(tmp_path: Path) -> None:
    deep: list[Any] = []
    content = proto(b"]" * 200_000, b"a" * 199_999, b".")
    deep = _plain.load(content, "x")
    assert len(deep) == 1
    cyclic = proto(b"}\x94\x8c\x08segments]\x94h\x01as\x8c\x0ddevice_traces](h\x01h\x00es.")
    (tmp_path / "s.pickle").write_bytes(cyclic)
    assert fastprof.memory_snapshot(tmp_path / "s.pickle").n_rows == 0

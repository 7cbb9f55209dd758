"""Exports of nsys as JSON read as the SQLite export of the same report."""

import gzip
import json
from pathlib import Path

import pytest

import fastprof
from fastprof import BadInputError, cli
from fastprof.errors import NotEnoughMemoryError
from fastprof.readers import json_text
from support import nsys_json
from support.exports import PID, Export, global_tid

US = 1000


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FASTPROF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def export(tmp_path: Path) -> Path:
    export = Export()
    for i in range(50):
        at = i * 20 * US
        export.push_pop(at, at + 9 * US, f"aten::mm, seq = {i}, sizes = [[8, 64], [64, 64]]", 1)
        export.launch(at + US, at + 2 * US, i + 1, 1)
        export.kernel(at + 3 * US, at + 15 * US, i + 1, name=f"gemm_{i % 3}", grid=(i + 1, 2, 1))
    export.push_pop(0, 990 * US, "größe ≤ 層", 1, registered=True)
    export.start_end(5 * US, 500 * US, "moved", 1, end_tid=2)
    export.copy(2000 * US, 2100 * US, 900, 1, 4096)
    export.memset(2200 * US, 2210 * US, 901, 64)
    export.graph_trace(2300 * US, 2400 * US, 902)
    return export.write(tmp_path / "net.sqlite")


def assert_same(path: Path, export: Path) -> None:
    profile, expected = fastprof.open(path, copies=True), fastprof.open(export, copies=True)
    assert profile.to_pandas().equals(expected.to_pandas())
    assert profile.ranges.to_pandas().equals(expected.ranges.to_pandas())
    assert profile.api.to_pandas().equals(expected.api.to_pandas())


@pytest.mark.parametrize("separate_strings", [False, True])
def test_it_reads_as_the_sqlite_export_does(export, tmp_path, separate_strings):
    path = nsys_json.write(export, tmp_path / "net.json", separate_strings=separate_strings)
    assert_same(path, export)


def test_strings_may_stand_at_the_end(export, tmp_path):
    lines = nsys_json.write(export, tmp_path / "net.json").read_text().splitlines()
    (tmp_path / "last.jsonl").write_text("\n".join([*lines[1:], lines[0]]).lstrip())
    assert_same(tmp_path / "last.jsonl", export)


def test_it_may_be_compressed(export, tmp_path):
    text = nsys_json.write(export, tmp_path / "net.json").read_bytes()
    (tmp_path / "net.json.gz").write_bytes(gzip.compress(text))
    assert_same(tmp_path / "net.json.gz", export)


def test_commands_take_it_and_say_what_it_lacks(export, tmp_path, capsys):
    path = str(nsys_json.write(export, tmp_path / "net.json"))
    assert cli.main([path]) == 0
    assert "no names of GPUs and no GPU metrics" in " ".join(capsys.readouterr().err.split())
    assert cli.main(["parse", "--check", path]) == 0


def lines_of(*events: dict[str, object]) -> str:
    strings = {"data": ["[Unknown]", "cudaLaunchKernel_v7000", "main thread"], "files": []}
    return "".join(json.dumps(line) + "\n" for line in (strings, *events))


THREAD = str(global_tid(PID, 1))
RANGE = {
    "Type": 59,
    "NvtxEvent": {
        "Type": 59, "Timestamp": "5", "EndTimestamp": "50", "Text": "mine", "GlobalTid": THREAD,
        "NsTime": True,
    },
}  # fmt: skip


def test_events_of_threads_processes_and_diagnostics(tmp_path):
    process = str(global_tid(PID, 0))
    sched = {"Timestamp": "7", "SchedIn": True, "GlobalTid": THREAD, "NsTime": True}
    sample = {"Timestamp": "8", "Callchain": [{"Symbol": 1}, {"Symbol": 2}], "GlobalTid": THREAD}
    text = {"Level": "Warning", "Text": "Not all CUDA events might have been collected."}
    call = {"startNs": "6", "endNs": "9", "eventClass": 0, "name": "1", "globalTid": THREAD}
    path = tmp_path / "net.jsonl"
    path.write_text(
        lines_of(
            RANGE,
            {"Type": 48, "TraceProcessEvent": {**call, "correlationId": 3, "returnValue32": 0}},
            {"Type": 41, "SchedEvent": sched},
            {"Type": 31, "CompositeEvent": {**sample, "NsTime": True}},
            {"Type": 27, "CommEvent": {"GlobalPid": process, "Command": "python train.py"}},
            {"Type": 49, "DiagnosticEvent": {**text, "GlobalProcess": process}},
            {"data": [{"nameIdx": "2", "priority": "10", "globalTid": THREAD}]},
        )
    )
    profile = fastprof.open(path)
    assert profile.about.threads == {(PID, 1): "main thread"}
    assert profile.about.processes == {PID: "python train.py"}
    assert profile.about.diagnostics == ["Not all CUDA events might have been collected"]
    assert profile.cpu_samples.to_pandas().name.tolist() == ["cudaLaunchKernel_v7000"]
    assert profile.cpu_switches.to_pandas().start.tolist() == [7]
    assert profile.api.to_pandas().name.tolist() == ["cudaLaunchKernel_v7000"]


def test_kernels_outside_of_graphs_may_have_a_node_of_number_0(export, tmp_path):
    lines = nsys_json.write(export, tmp_path / "net.json").read_text().splitlines()
    objects = [json.loads(line) for line in lines if line]
    for each in objects:
        each.get("CudaEvent", {}).get("kernel", {}).update(graphNodeId="0", graphId=0)
    (tmp_path / "zero.json").write_text("\n".join(map(json.dumps, objects)))
    assert_same(tmp_path / "zero.json", export)


def test_ids_beyond_signed_integers_are_read(tmp_path):
    path, thread = tmp_path / "net.json", global_tid(PID, 1) | 254 << 56
    path.write_text(lines_of({**RANGE, "NvtxEvent": RANGE["NvtxEvent"] | {"GlobalTid": thread}}))
    assert fastprof.open(path).ranges.to_pandas().pid.tolist() == [PID]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (lines_of(), "no events of Nsight Systems in it; nsys export --type sqlite"),
        (lines_of(RANGE)[:-20], "damaged near line 2: .*nsys export --type sqlite"),
        (
            lines_of({"Type": 59, "NvtxEvent": {"Type": 59, "Timestamp": "5"}}),
            "line 2 cannot be read: .*not in nanoseconds.*nsys export --type sqlite",
        ),
        (
            lines_of({"Type": 79, "CudaEvent": {"startNs": "x", "kernel": {}}}),
            "line 2 cannot be read",
        ),
        (lines_of({"Type": 48, "TraceProcessEvent": []}), "line 2 cannot be read"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, text, message):
    (tmp_path / "net.json").write_text(text)
    with pytest.raises(BadInputError, match=message):
        fastprof.open(tmp_path / "net.json")


def test_a_compressed_export_that_is_cut_off_is_refused(tmp_path):
    text = lines_of(
        *(RANGE | {"NvtxEvent": RANGE["NvtxEvent"] | {"Text": str(i)}} for i in range(999))
    )
    (tmp_path / "net.json.gz").write_bytes(gzip.compress(text.encode())[:-200])
    with pytest.raises(BadInputError, match=r"damaged near line .*is cut off; get the file again"):
        fastprof.open(tmp_path / "net.json.gz")


def test_a_compressed_export_is_bounded_by_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(json_text, "ALWAYS_INFLATED", 1 << 20)
    text = lines_of(RANGE) + " " * (8 << 20)
    (tmp_path / "net.json.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(NotEnoughMemoryError, match=r"net\.json\.gz"):
        fastprof.open(tmp_path / "net.json.gz")


def test_traces_of_torch_are_no_exports(tmp_path):
    path = tmp_path / "net.json"
    path.write_text('{"data": [1], "traceEvents": []}')
    assert len(fastprof.open(path)) == 0

"""NCCL's ranges with payloads in exports of Nsight Systems: decoding, and sizes of collectives.

The layout of a blob is that of Nsight Systems 2026, the schemas those of NCCL 2.28 in
emit_nvtx_2gpu_nsys2026.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.profile.data import ProfileData
from fastprof.profile.load import load
from fastprof.readers.nsys import host_events as payloads
from fastprof.readers.sqlite.database import Database
from support.exports import Export

INT, UINT64, SIZE, OPERATION = 5, 18, 22, 16777232
INIT, ALL_REDUCE, GATHER, SEND = 16777218, 16777223, 16777220, 16777226
COMMUNICATOR = ("NCCL communicator ID", UINT64, None)
BYTES = ("Message size [bytes]", SIZE, 8)
SCHEMAS: dict[int, list[tuple[str, int, int | None]]] = {
    INIT: [COMMUNICATOR, ("No. of ranks", INT, 8), ("Rank", INT, 12), ("CUDA device", INT, 16)],
    ALL_REDUCE: [COMMUNICATOR, BYTES, ("Reduction operation", OPERATION, 16)],
    GATHER: [COMMUNICATOR, BYTES],
    SEND: [COMMUNICATOR, BYTES, ("Peer rank", INT, 16)],
}
KERNEL = "ncclDevKernel_{}(ncclDevKernelArgsStorage<4096ul>)"
TID = 1


def blob(schema: int, *values: int, form: str = "QQ") -> bytes:
    payload = struct.pack(f"<{form}", *values)
    payload += bytes(-len(payload) % 8)
    return struct.pack("<IIIIQQ", 1, 0, schema, 0, len(payload), 32 + len(payload)) + payload


class Trace(Export):
    """An export whose NVTX events have blobs."""

    def __init__(self) -> None:
        super().__init__()
        self.blobs: dict[int, bytes] = {}

    def nccl(self, start: int, end: int, name: str, payload: bytes | None = None) -> Trace:
        if payload is not None:
            self.blobs[start] = payload
        self.push_pop(start, end, name, TID, domain=1, registered=True)
        return self

    def launched(self, at: int, corr: int, name: str, start: int) -> Trace:
        self.launch(at, at + 1, corr, TID)
        self.kernel(start, start + 100, corr, name=KERNEL.format(name), stream=20)
        return self

    def saved(self, path: Path) -> Path:
        self.write(path)
        with sqlite3.connect(path) as file:
            columns = [row[1] for row in file.execute("PRAGMA table_info(NVTX_EVENTS)")]
            if "binaryData" not in columns:
                file.execute("ALTER TABLE NVTX_EVENTS ADD COLUMN binaryData TEXT")
            for start, payload in self.blobs.items():
                file.execute("UPDATE NVTX_EVENTS SET binaryData=? WHERE start=?", (payload, start))
            file.execute(
                "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER, schemaId INTEGER, "
                "idx INTEGER, flags INTEGER, type INTEGER, name TEXT, description TEXT, "
                "arrayOrUnionDetail INTEGER, offset INTEGER)"
            )
            file.executemany(
                "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES "
                "VALUES (1, ?, ?, NULL, ?, ?, NULL, NULL, ?)",
                [
                    (number, i, kind, name, offset)
                    for number, fields in SCHEMAS.items()
                    for i, (name, kind, offset) in enumerate(fields)
                ]
                * 2,  # each process registers them
            )
        return path


def trace() -> Trace:
    """Calls in communicator 171 of 4 ranks, one outside of any group and two groups."""
    result = Trace()
    result.nccl(0, 5, "ncclCommInitRankConfig", blob(INIT, 171, 4, 0, 0, form="Qiii"))
    result.nccl(10, 20, "ncclAllReduce", blob(ALL_REDUCE, 171, 4000, 0, form="QQI"))
    result.launched(15, 1, "AllReduce_Sum_f32_RING_LL", 1000)
    result.nccl(30, 32, "ncclGroupStart")
    result.nccl(33, 35, "ncclSend", blob(SEND, 171, 100, 1, form="QQi"))
    result.nccl(36, 38, "ncclRecv", blob(SEND, 171, 300, 1, form="QQi"))
    result.nccl(40, 50, "ncclGroupEnd").launched(45, 2, "SendRecv", 2000)
    result.nccl(60, 62, "ncclGroupStart")
    result.nccl(63, 65, "ncclAllGather", blob(GATHER, 171, 50))
    result.nccl(66, 68, "ncclAllGather", blob(GATHER, 171, 30))
    result.nccl(70, 80, "ncclGroupEnd").launched(75, 3, "AllGather_RING_LL", 3000)
    return result.launched(77, 4, "AllGather_RING_LL", 3100)


def rows_of(made: Trace, folder: Path) -> dict[str, dict[str, Any]]:
    table = fastprof.open(made.saved(folder / "one.sqlite")).overlap()
    return {row["collective"]: row for row in table.rows()}


def test_sizes_and_ranks_are_those_of_the_payloads(tmp_path: Path) -> None:
    rows = rows_of(trace(), tmp_path)
    common = {"process_group": "0xab", "group_size": 4}
    expected = {
        "all_reduce": {
            "bytes": 4000,
            "in_bytes": 4000,
            "out_bytes": 4000,
            "calls": 1,
            "kernels": 1,
        },
        "send_recv": {"bytes": 300, "in_bytes": 300, "out_bytes": 300, "calls": 1, "kernels": 1},
        "all_gather": {"bytes": 320, "in_bytes": 80, "out_bytes": 320, "calls": 1, "kernels": 2},
    }
    for name, values in expected.items():
        result = {key: rows[name][key] for key in (*common, *values)}
        assert result == common | values, name
    assert rows["all_reduce"]["bus_bytes_per_s"] == pytest.approx(1.5 * 4000 / 100e-9)
    assert rows["all_gather"]["bus_bytes_per_s"] == pytest.approx(0.75 * 320 / 200e-9)


def test_an_operator_of_messages_keeps_its_name(tmp_path: Path) -> None:
    made = trace().push_pop(29, 51, "c10d::alltoall_base_, seq = 1, op_id = 2", TID)
    assert isinstance(made, Trace)
    rows = rows_of(made, tmp_path)
    result = [rows["all_to_all"][key] for key in ("in_bytes", "out_bytes", "bytes", "group_size")]
    assert result == [100, 300, 300, 4]


def test_the_group_is_told_where_the_operator_has_the_size(tmp_path: Path) -> None:
    made = trace().push_pop(9, 21, "c10d::allreduce_, op_id = 2, sizes = [[500], [], []]", TID)
    assert isinstance(made, Trace)
    row = rows_of(made, tmp_path)["all_reduce"]
    assert (row["process_group"], row["group_size"], row["bytes"]) == ("0xab", 4, 2000)


def test_a_group_of_several_collectives_has_no_size(tmp_path: Path) -> None:
    made = Trace().nccl(0, 5, "ncclSend", blob(SEND, 171, 100, 1, form="QQi"))
    made.nccl(6, 8, "ncclAllReduce", blob(ALL_REDUCE, 171, 4000, 0, form="QQI"))
    made.launched(20, 1, "Generic", 1000)
    (row,) = rows_of(made, tmp_path).values()
    assert (row["collective"], row["bytes"], row["process_group"]) == (None, None, "0xab")
    assert "group_size" not in row


def test_calls_of_other_threads_and_later_calls_do_not_count(tmp_path: Path) -> None:
    made = Trace().nccl(50, 60, "ncclAllReduce", blob(ALL_REDUCE, 171, 4000, 0, form="QQI"))
    made.launched(20, 1, "AllReduce_Sum_f32_RING_LL", 1000)
    made.launch(55, 56, 2, 2).kernel(2000, 2100, 2, name=KERNEL.format("AllReduce"), stream=20)
    (row,) = rows_of(made, tmp_path).values()
    assert (row["bytes"], row["calls"]) == (None, 2)


def test_a_kernel_after_a_call_is_not_its_own(tmp_path: Path) -> None:
    made = Trace().nccl(10, 20, "ncclAllReduce", blob(ALL_REDUCE, 171, 4000, 0, form="QQI"))
    made.launched(15, 1, "AllReduce_Sum_f32_RING_LL", 1000)
    made.launched(30, 2, "AllReduce_Sum_f32_RING_LL", 2000)
    table = fastprof.open(made.saved(tmp_path / "one.sqlite")).overlap()
    assert sorted(table["message_bytes"].tolist(), key=str) == [4000, None]


@pytest.mark.parametrize("scan", ["pages", "sqlite"])
@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"short",
        blob(ALL_REDUCE, 171, 4000)[:-1],
        blob(999, 171, 4000),
        struct.pack("<IIIIQQ", 1, 0, ALL_REDUCE, 0, 1 << 60, 0),
    ],
)
def test_damaged_payloads_are_ignored(
    damaged: bytes, scan: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTPROF_SCAN", scan)
    made = Trace().nccl(10, 20, "ncclAllReduce", damaged)
    made.launched(15, 1, "AllReduce_Sum_f32_RING_LL", 1000)
    (row,) = rows_of(made, tmp_path).values()
    assert (row["collective"], row["bytes"]) == ("all_reduce", None)


def test_fields_beyond_the_payload_are_left_out(tmp_path: Path) -> None:
    made = Trace().nccl(10, 20, "ncclAllReduce", blob(ALL_REDUCE, 171, form="Q"))
    with Database(made.launched(15, 1, "x", 1000).saved(tmp_path / "one.sqlite")) as database:
        payload_events = payloads.payload_events(database)
    (name,) = payload_events.names
    assert json.loads(name or "") == {"NCCL communicator ID": 171, "name": "ncclAllReduce"}
    assert (payload_events.start.tolist(), payload_events.end.tolist()) == ([10], [20])


def test_an_export_without_payloads_has_none(tmp_path: Path) -> None:
    path = Export().push_pop(0, 10, "ncclAllReduce", TID).write(tmp_path / "one.sqlite")
    with Database(path) as database:
        assert payloads.payload_events(database) is None


@pytest.mark.parametrize("host", [True, False])
def test_payloads_are_those_of_ranges_also_when_kept(host: bool, tmp_path: Path) -> None:
    made = trace().nccl(5000, 5010, "ncclSend", blob(SEND, 171, 64, 3, form="QQi"))
    made.push_pop(6000, 6010, "another domain", TID, domain=7)
    path = made.saved(tmp_path / "one.sqlite")
    with sqlite3.connect(path) as file:
        marks = "INSERT INTO NVTX_EVENTS (start, eventType, domainId, globalTid, binaryData)"
        file.execute(f"{marks} VALUES (7000, 34, 1, 1, ?)", (blob(ALL_REDUCE, 171, 8),))
    events = load(ProfileData, path, host=host).source.host_events("payloads")
    names = [json.loads(events.name.at(row)) for row in range(len(events))]
    assert [name["name"] for name in names].count("ncclSend") == 2
    assert {"NCCL communicator ID": 171, BYTES[0]: 64, "Peer rank": 3, "name": "ncclSend"} in names
    assert events.start.tolist()[-1] == 5000
    assert events.end.tolist()[-1] == 5010

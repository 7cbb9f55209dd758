"""Seeds: small files of every format, made by the tests' builders and cut from real files.

Seeds have tens of rows per table, because reading a mutant costs as much as reading its seed.
"""

import contextlib
import gzip
import io
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

import apsw
from bench.generate import generate
from bench.rocpd_schema import VERSIONS

from fastprof import cli
from support.exports import Export
from support.kineto_files import KinetoFile
from support.nsys_schemas import SCHEMAS
from support.nvprof_files import NvprofFile
from support.real_data import data_dir, traces
from support.rocpd_files import HSA, RCCL, Rocpd
from support.rocprof_files import GPU, RocprofFile
from support.rpd_files import RpdFile

NSYS, NVPROF, ROCPD, RPD, KINETO, ROCPROF, GZIP, DICT = FORMATS = (
    *("nsys", "nvprof", "rocpd", "rpd", "kineto", "rocprof", "gzip", "dict"),
)
SQLITE = (NSYS, NVPROF, ROCPD, RPD)
TENSORS = ", ".join(
    f"{{'name': '', 'type': 'tensor', 'shape': {shape}, 'dtype': 'float16'}}"
    for shape in ("(8, 16)", "(32, 16)")
)
TORCH_CALL = f"{{'mod': 'torch.nn.functional', 'op': 'linear', 'args': [{TENSORS}]}}"
STACK = "{'traceMarker': ['train.py:310', 'net.py:12'], 'funcStack': '/<module>/main/Net::forward'}"
MODULE = "{'mod': 'LSTMCell', 'strRepr': '512, 512'}"
MOST_ROWS = 40  # per table, of seeds cut from real files
MOST_BYTES = 150_000  # of a seed cut from a real file


@dataclass(frozen=True)
class Seed:
    """The content of a file."""

    name: str
    format: str
    content: bytes


def corpus(real: bool = True) -> dict[str, Seed]:
    """All seeds by name; with `real`, also those cut from real traces, if available."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        made = [*_nsys(where), *_nvprof(where), *_rocpd(where), *_kineto(), *_dict(where)]
        made += [*_rpd(where), *_rocprof()]
        if real and (directory := data_dir()) is not None:
            made += [*_cut_databases(directory), *_cut_traces(directory), *_cut_lines(directory)]
    return {seed.name: seed for seed in made}


def _rpd(folder: Path) -> list[Seed]:
    """Files of rocmProfileData of all versions."""
    seeds = []
    for version in (1, 2, 3):
        file = RpdFile(version).marker(0, 90_000, 900, "step")
        for i in range(12):
            at, name = 1000 * i, f"aten::mul, seq = {i}, op_id = {i}, sizes = [[8, 16]]"
            file.marker(at, at + 900, 800 + i, name, tid=101 + i % 2)
            file.call(at + 10, at + 20, i + 1, tid=101 + i % 2)
            file.kernel(at + 50, at + 150, i + 1, f"k{i % 4}", grid=(3 * i + 1, 2, 1), gpu=i % 2)
            file.call(at + 200, at + 210, 100 + i, "hipMemcpyAsync")
            file.copy(at + 300, at + 400, 100 + i, 64 * i, ("CopyHostToDevice", "Fill")[i % 2])
        path = file.write(folder / f"rpd-{version}")
        seeds.append(Seed(path.name, RPD, path.read_bytes()))
    return seeds


def _rocprof() -> list[Seed]:
    """JSON of rocprofv3 of two processes."""
    processes = [RocprofFile(pid, gpus=2) for pid in (100, 200)]
    for file in processes:
        file.marker(0, 90_000, 900, "step").rccl(80_000, 81_000, 901).hsa(5, 8, 902)
        for i in range(8):
            at, name = 1000 * i, f"aten::mul, seq = {i}, op_id = {i}, sizes = [[8, 16]]"
            file.marker(at, at + 900, 800 + i, name).hip(at + 10, at + 20, i + 1)
            file.kernel(at + 50, at + 150, i + 1, f"k{i % 4}", agent=GPU + i % 2)
            file.hip(at + 200, at + 210, 100 + i, "hipMemcpyAsync")
            file.copy(at + 300, at + 400, 100 + i, 64 * i).memory(at + 5, 4096 * i, 64)
            file.memory(at + 500, 4096 * i, 0, "FREE")
    text = processes[0].with_process(processes[1]).text().encode()
    return [
        Seed("rocprof", ROCPROF, text),
        Seed("rocprof-gzip", GZIP, gzip.compress(text, mtime=0)),
    ]


def _real(directory: Path, *patterns: str) -> list[Path]:
    """The real traces that a pattern fits, without files of formats that fastprof does not read."""
    return [path for name in traces(*patterns) if (path := directory / name).is_file()]


def _steps(write: Export | NvprofFile, n_steps: int = 4) -> None:
    """Forward on one thread and backward on another, with all forms of ranges around launches."""
    for i in range(n_steps):
        at = 10_000 * i
        write.push_pop(at, at + 4000, f"step {i}", tid=1)
        write.push_pop(at + 100, at + 3000, "layer:block", tid=1)
        write.push_pop(at + 200, at + 2000, STACK, tid=1)
        write.push_pop(at + 250, at + 1900, MODULE, tid=1)
        write.push_pop(at + 300, at + 1000, TORCH_CALL, tid=1)
        sizes = f"aten::linear, seq = {i}, op_id = {2 * i}, sizes = [[8, 16], [32, 16], []]"
        write.push_pop(at + 310, at + 900, sizes, tid=1)
        write.launch(at + 400, at + 410, 4 * i, tid=1)
        write.kernel(at + 500, at + 700, 4 * i, name="ampere_fp16_s16816gemm_fp16_128x64_tn")
        write.push_pop(at + 1100, at + 1500, f"mul, seq = {i}", tid=1)
        write.launch(at + 1200, at + 1210, 4 * i + 1, tid=1)
        write.kernel(at + 1300, at + 1400, 4 * i + 1, name="vectorized_elementwise_kernel")
        outer = f"autograd::engine::evaluate_function: AddmmBackward0, seq = {i}, op_id = {i + 90}"
        write.push_pop(at + 5000, at + 6000, outer, tid=2)
        write.push_pop(at + 5100, at + 5900, f"AddmmBackward0, seq = {i}, op_id = {i + 91}", tid=2)
        write.launch(at + 5200, at + 5210, 4 * i + 2, tid=2)
        write.kernel(at + 5300, at + 5500, 4 * i + 2, name="ampere_sgemm_32x32_nt")
        write.copy(at + 7000, at + 7100, 4 * i + 3, 1 + i % 3, 4096)
    write.push_pop(50_000, None, "never closed", tid=1)


def _export(schema: str) -> Export:
    export = Export().gpu()
    _steps(export)
    export.push_pop(41_000, 42_000, "ncclAllReduce", tid=1, domain=3, registered=True)
    export.start_end(41_500, 43_000, "crosses", tid=1, end_tid=2).mark(44_000, "mark", tid=1)
    export.mark(0, "NCCL", tid=1, domain=3, event="NvtxDomainCreate")
    export.mark(0, "worker", tid=2, event="NvtxThread")
    export.kernel(45_000, 45_100, 4, pid=101).launch(44_900, 44_950, 4, tid=9, pid=101)
    export.kernel(46_000, 46_100, 999)
    export.launch(47_000, 47_010, 50, tid=1, name="cudaGraphLaunch_v10000")
    if schema >= "2022":
        for node in (1, 2, 3):
            export.graph_node_event(40_000 + node, 40_002 + node, tid=1, node=node)
            copied = (1 << 32) + node
            export.graph_node_event(40_010 + node, 40_012 + node, 1, copied, original=node)
            export.kernel(47_100 + 100 * node, 47_150 + 100 * node, 50, graph_node=copied)
        export.graph_trace(48_000, 49_000, 51).launch(47_900, 47_950, 51, tid=1)
    return export.memset(49_100, 49_200, 60, 1024).launch(49_000, 49_050, 60, tid=1)


def _nsys(folder: Path) -> list[Seed]:
    seeds = []
    for i, schema in enumerate(SCHEMAS):
        path = folder / f"nsys-{schema}"
        _export(schema).write(path, schema, page_size=(512, 1024, 4096)[i % 3])
        seeds.append(Seed(path.name, NSYS, path.read_bytes()))
    many = folder / "nsys-pages"  # tables of several pages, and values with overflow pages
    export = Export().gpu()
    for i in range(60):
        at, long = 1000 * i, f"long {i}" + "x" * (1500 if i % 20 == 0 else 0)
        export.push_pop(at, at + 900, long, tid=1)
        export.push_pop(at + 10, at + 800, f"aten::mul, seq = {i}", tid=1, registered=i % 2 > 0)
        export.launch(at + 20, at + 30, corr=i, tid=1)
        export.kernel(at + 40, at + 90, corr=i, name=f"k{i % 30}", demangled=f"k{i % 30}<float>()")
    seeds.append(Seed(many.name, NSYS, export.write(many, page_size=512).read_bytes()))
    generate(folder / "nsys-bench", 60)
    seeds.append(Seed("nsys-bench", NSYS, _cut_database(folder / "nsys-bench", NSYS)))
    return seeds


def _nvprof(folder: Path) -> list[Seed]:
    seeds = []
    for year, serialised in ((2016, True), (2021, False)):
        file = NvprofFile(year=year, serialised=serialised)
        _steps(file)
        file.set(46_000, 46_100, 70, 512).launch(45_000, 45_010, 71, -5, driver=True)
        path = file.write(folder / f"nvprof-{year}")
        seeds.append(Seed(path.name, NVPROF, path.read_bytes()))
    return seeds


def _rocpd(folder: Path) -> list[Seed]:
    seeds = []
    for version in VERSIONS:
        run, other = Rocpd(version), Rocpd(version, "_b_1", pid=200)
        for each in (run, other):
            for i in range(4):
                at = 10_000 * i
                each.range(at, at + 9000, f"step {i}", 900 + i)
                sizes = f"aten::linear, seq = {i}, op_id = {2 * i}, sizes = [[8, 16], [32, 16]]"
                each.range(at + 100, at + 4000, sizes, 800 + i).range(at, at + 5000, TORCH_CALL)
                each.call(at + 200, at + 300, 10 * i + 1).kernel(at + 400, at + 900, 10 * i + 1)
                each.region(at + 210, at + 220, "hsa_signal_store", HSA, 10 * i + 2,
                            parent=10 * i + 1)  # fmt: skip
                each.kernel(at + 950, at + 990, 10 * i + 2, "add")
                each.call(at + 1000, at + 1100, 10 * i + 3, "hipMemcpyAsync")
                each.copy(at + 1200, at + 1300, 10 * i + 3).allocation(at, 4096 * i, 512)
                each.region(at + 400, at + 900, "gemm", "rocm_kernel_dispatch", 10 * i + 1)
                each.region(at + 5000, at + 5900, "ncclAllReduce", RCCL, 10 * i + 4,
                            arguments={"count": "64", "datatype": "7"})  # fmt: skip
                each.kernel(at + 5100, at + 5900, 10 * i + 4, "ncclDevKernel", stream=2)
                each.counter("FETCH_SIZE", 1.5, 2.5)
        path = run.write(folder / f"rocpd-{version}", other, page_size=512)
        seeds.append(Seed(path.name, ROCPD, path.read_bytes()))
    return seeds


def _kineto() -> list[Seed]:
    trace = KinetoFile(
        baseTimeNanoseconds=10**15,
        deviceProperties=[{"id": 0, "name": "NVIDIA A100", "computeMajor": 8, "computeMinor": 0}],
        distributedInfo={"backend": "nccl", "rank": 0, "world_size": 2},
    )
    trace.event("M", "", "process_name", 0, pid=100, tid=0, args={"name": "python"})
    for i in range(6):
        at, shapes = 100_000 * i, [[8, 16], [32, 16], []]
        trace.annotation(at, at + 9000, f"ProfilerStep#{i}")
        trace.python(at + 10, at + 8900, "train.py(62): main")
        trace.python(at + 20, at + 8000, "nn.Module: Linear_0")
        told = {"Call stack": "train.py(62): main", "Module Hierarchy": "Net.conv1"}
        trace.op(at + 100, at + 900, "aten::linear", seq=i, dims=shapes, external=3 * i,
                 types=["float", "float", ""], strides=shapes, values=["", "", "1"],
                 **told)  # fmt: skip
        trace.launch(at + 200, at + 210, 3 * i)
        trace.kernel(at + 300, at + 400, 3 * i, external=3 * i, **{"graph node id": i})
        trace.op(at + 20_000, at + 30_000, "AddmmBackward0", tid=2, seq=i, **{"Fwd thread id": 1})
        trace.launch(at + 21_000, at + 21_010, 3 * i + 1, tid=2, cat="cuda_driver")
        trace.kernel(at + 22_000, at + 22_500, 3 * i + 1, "ampere_sgemm_32x32_nt")
        trace.arrow(i, (at + 150, 1), (at + 20_500, 2))
        trace.copy(at + 40_000, at + 41_000, 3 * i + 2, "Memcpy HtoD (Pageable -> Device)", 4096)
        trace.event("i", "cpu_instant_event", "[memory]", at, pid=100, tid=1, s="t",
                    args={"Bytes": -512, "Addr": 1 << 47, "Total Allocated": 1 << 30})  # fmt: skip
    text = trace.text().encode()
    bare = json.dumps(trace.events, indent=1).encode()
    return [
        Seed("kineto", KINETO, text),
        Seed("kineto-bare", KINETO, bare),
        Seed("kineto-gzip", GZIP, gzip.compress(text, mtime=0)),
    ]


def _dict(folder: Path) -> list[Seed]:
    path, out = folder / "lines.sqlite", folder / "lines.dict"
    _export("2024").write(path, "2024")
    with contextlib.redirect_stderr(io.StringIO()):
        cli.main(["parse", str(path), "-o", str(out)])
    return [Seed("dict", DICT, out.read_bytes())]


def _cut_databases(directory: Path) -> list[Seed]:
    made = []
    kinds = {".sqlite": NSYS, ".db": ROCPD}
    for path in _real(directory, "**/*.sqlite", "**/*.nvvp", "pyprof/*.sql", "rocpd/*.db"):
        kind = kinds.get(path.suffix, NVPROF)
        content = _cut_database(path, kind)
        if len(content) <= MOST_BYTES * 4:
            made.append(Seed(f"real-{path.stem}", kind, content))
    return made


def _cut_database(path: Path, kind: str) -> bytes:
    """The file without its small tables of constants, with the first rows of each other table and
    the strings that they refer to."""
    connection = apsw.Connection(":memory:")
    connection.deserialize("main", path.read_bytes())
    run = connection.execute
    run("PRAGMA journal_mode = MEMORY")
    names = [name for (name,) in run("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    named = set()
    strings = "StringIds" if kind == NSYS else "StringTable"
    for name in names:
        if name.startswith(("sqlite_", "rocpd_string", "rocpd_event")) or name == strings:
            continue
        if name.startswith("ENUM_") and name != "ENUM_NSYS_EVENT_TYPE":
            run(f'DROP TABLE "{name}"')
            continue
        run(f'DELETE FROM "{name}" WHERE rowid > (SELECT rowid FROM "{name}" '
            f"ORDER BY rowid LIMIT 1 OFFSET {MOST_ROWS})")  # fmt: skip
        for _, column, *_ in run(f'PRAGMA table_info("{name}")').fetchall():
            whole = f"""SELECT "{column}" FROM "{name}" WHERE typeof("{column}") = 'integer'"""
            named |= {value for (value,) in run(whole)}
    if strings in names:
        key = "id" if kind == NSYS else "_id_"
        wanted = ", ".join(str(value) for value in sorted(named))
        run(f"DELETE FROM {strings} WHERE {key} NOT IN ({wanted})")
    run("VACUUM")
    return connection.serialize("main")


def _cut_traces(directory: Path) -> list[Seed]:
    made = []
    for path in _real(directory, "kineto/**/*.json.gz"):
        if "_rank" in path.name and "_rank0" not in path.name:  # alike
            continue
        root = json.loads(gzip.decompress(path.read_bytes()))
        events = root["traceEvents"] if isinstance(root, dict) else root
        some = events[:: max(1, len(events) // 100)]
        kept = {json.dumps(event): event for event in [*events[:40], *some, *events[-20:]]}
        cut, size = [], 0
        for text, event in kept.items():
            size += len(text)
            if size < MOST_BYTES // 2:
                cut.append(event)
        root = {**root, "traceEvents": cut} if isinstance(root, dict) else cut
        name = f"real-{path.name.removesuffix('.json.gz')}"
        made.append(Seed(name, KINETO, json.dumps(root, indent=1).encode()))
    return made


def _cut_lines(directory: Path) -> list[Seed]:
    made = []
    for path in _real(directory, "**/*.dict"):
        lines = path.read_bytes().splitlines(keepends=True)
        made.append(Seed(f"real-{path.stem}", DICT, b"".join(lines[:: len(lines) // 25])))
    return made

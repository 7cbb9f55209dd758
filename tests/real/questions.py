"""Questions that people ask of a trace, with the calls of tools that answer them.

Each has at most two calls. `expected` reads the raw file (`raw_rows`), never fastprof.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from pytest import approx

from real.raw_rows import (
    calls,
    complete,
    kernels,
    launched_in,
    ranges,
    sums,
    union,
    work,
)  # fmt: skip

Call = tuple[str, dict[str, Any]]
Answers = list[Mapping[str, Any]]

GPUS = "nsys/emit_nvtx_2gpu_nsys2026.sqlite"
LM = "nsys/ranges_lm_a100_nsys2024.sqlite"
TRAIN = "nsys/ranges_rtx3070_nsys2025.sqlite"
UPLOAD = "nsys/fsdp_upload_2gpu_h100.sqlite"
RESNET = "kineto/resnet50_2021_01_loader0.json.gz"
LOADERS = "kineto/resnet50_2021_02_loader4.json.gz"
MI300 = "kineto/resnet18_mi300_full.json.gz"
DLRM = "kineto/dlrm_rank0.json.gz"
V100 = "kineto/train_v100_2022.json.gz"
FIND, NAVIGATE, BOTTLENECK, NVTX, STREAMS, ANALYSIS = (
    "find the n-th", "navigate", "bottlenecks", "nvtx", "streams", "analysis",
)  # fmt: skip


class Question(NamedTuple):
    """A question.

    Parameters
    ----------
    group, text : the question
    trace : the trace
    calls : tool and arguments; a function makes the arguments of the second from the first answer
    answer : what the answers say
    expected : what the raw file says
    """

    group: str
    text: str
    trace: str
    calls: tuple[str, Any] | tuple[str, Any, str, Any]
    answer: Callable[[Answers], Any]
    expected: Callable[[str], Any]


def row(answers: Answers, *names: str, of: int = -1, place: int = 0) -> Any:
    """Values of a row of an answer."""
    result = answers[of]["rows"][place]
    return result[names[0]] if len(names) == 1 else tuple(result[name] for name in names)


def nth(n: int, test: Callable[[Any], bool], of: Callable[[str], list[Any]] = work) -> Any:
    """A function from a trace to the time since the first GPU work, and the duration, of a row."""

    def expected(path: str) -> tuple[int, int]:
        found = [each for each in of(path) if test(each)][n]
        return found.start - work(path)[0].start, found.ns

    return expected


def longest(test: Callable[[Any], bool], of: Callable[[str], list[Any]] = work) -> Any:
    """A function from a trace to the duration of the longest row that fits."""
    return lambda path: max(each.ns for each in of(path) if test(each))


def count(test: Callable[[Any], bool], of: Callable[[str], list[Any]] = work) -> Any:
    """A function from a trace to the number of rows that fit."""
    return lambda path: sum(map(test, of(path)))


def total(test: Callable[[Any], bool], of: Callable[[str], list[Any]] = work) -> Any:
    """A function from a trace to the time of the rows that fit."""
    return lambda path: sum(each.ns for each in of(path) if test(each))


AT = ("at_ns", "gpu_ns")
WALL = ("at_ns", "wall_ns")
MS = 1_000_000
GEMMS = ("nvjet", "gemm", "Cijk", "cutlass")


def is_gemm(each: Any) -> bool:
    return any(part in each.name for part in GEMMS)


def by_key(answers: Answers, key: str, *names: str) -> dict[Any, Any]:
    """Values of all rows by their key."""
    rows = answers[-1]["rows"]
    if len(names) == 1:
        return {each[key]: each[names[0]] for each in rows}
    return {each[key]: tuple(each[name] for name in names) for each in rows}


FINDING = [
    Question(FIND, "the third flash attention kernel on GPU 0", GPUS,
             ("find", {"where": ["kernel=*flash_fwd*", "device=0"], "nth": 3}),
             lambda a: row(a, *AT), nth(2, lambda k: "flash_fwd" in k.name and k.device == 0)),
    Question(FIND, "the last NCCL kernel of GPU 1", GPUS,
             ("find", {"where": ["name=*nccl*", "device=1"], "nth": -1}),
             lambda a: row(a, *AT), nth(-1, lambda k: "nccl" in k.name and k.device == 1)),
    Question(FIND, "the longest kernel of the capture", GPUS,
             ("find", {"sort": "gpu_ns", "limit": 1}),
             lambda a: row(a, "gpu_ns"), longest(lambda k: True)),
    Question(FIND, "the fifth kernel longer than 1 ms in stream 7", GPUS,
             ("find", {"where": "stream=7", "longer": "1ms", "nth": 5}),
             lambda a: row(a, *AT), nth(4, lambda k: k.stream == 7 and k.ns >= MS)),
    Question(FIND, "the third longest matrix product", GPUS,
             ("find", {"where": "kind=gemm", "sort": "gpu_ns", "offset": 2, "limit": 1}),
             lambda a: row(a, "gpu_ns"),
             lambda p: sorted((k.ns for k in work(p) if is_gemm(k)), reverse=True)[2]),
    Question(FIND, "the shortest attention kernel", GPUS,
             ("find", {"where": "kind=attention", "limit": 1, "sort": "gpu_ns"},
              "find", lambda a: {"where": "kind=attention", "limit": 1, "sort": "gpu_ns",
                                 "offset": a[0]["n_rows"] - 1}),
             lambda a: row(a, "gpu_ns"),
             lambda p: min(k.ns for k in work(p) if "flash_fwd" in k.name)),
    Question(FIND, "the three shortest NCCL kernels", GPUS,
             ("find", {"where": "kind=communication", "sort": "gpu_ns", "ascending": True,
                       "limit": 3}),
             lambda a: [each["gpu_ns"] for each in a[-1]["rows"]],
             lambda p: sorted(k.ns for k in work(p) if "nccl" in k.name)[:3]),
    Question(FIND, "the second copy from the host: how many bytes", UPLOAD,
             ("find", {"where": "direction=HtoD", "nth": 2},
              "kernel", lambda a: {"idx": row(a, "idx")}),
             lambda a: a[-1]["kernel"]["copied_bytes"],
             lambda p: [k.n_bytes for k in work(p) if k.direction == "HtoD"][1]),
    Question(FIND, "kernels 10 to 12 of ampere_sgemm_128x64_tn", LM,
             ("find", {"where": "kernel=ampere_sgemm_128x64_tn", "nth": "10:12"}),
             lambda a: [each["gpu_ns"] for each in a[-1]["rows"]],
             lambda p: [k.ns for k in work(p) if k.name == "ampere_sgemm_128x64_tn"][9:12]),
    Question(FIND, "the second kernel of at least 500 us", RESNET,
             ("find", {"longer": "500us", "nth": 2}),
             lambda a: row(a, *AT), nth(1, lambda k: k.ns >= MS // 2)),
    Question(FIND, "grid and registers of the 100th kernel on GPU 0", GPUS,
             ("find", {"where": ["device=0", "kind!=mem*"], "nth": 100},
              "kernel", lambda a: {"idx": row(a, "idx")}),
             lambda a: (a[-1]["kernel"]["grid"][0], a[-1]["kernel"]["registers"]),
             lambda p: next((k.grid, k.registers) for k in
                            [k for k in kernels(p) if k.device == 0][99:])),
]  # fmt: skip


def after(n: int, test: Callable[[Any], bool]) -> Any:
    """A function from a trace to the first row that fits after the n-th flash kernel."""

    def expected(path: str) -> tuple[int, int]:
        rows = work(path)
        flash = [i for i, each in enumerate(rows) if "flash_fwd" in each.name][n]
        found = next(each for each in rows[flash + 1 :] if test(each))
        return found.start - rows[0].start, found.ns

    return expected


def launch_of(path: str, k: Any) -> Any:
    """The API call that launches a piece of work."""
    return next(
        call
        for call in calls(path)
        if (call.process, call.correlation) == (k.process, k.correlation)
    )


def lane(path: str, k: Any) -> list[Any]:
    """The work on the stream of a kernel."""
    key = (k.device, k.stream, k.process)
    return [each for each in work(path) if (each.device, each.stream, each.process) == key]


def tenth_flash(path: str) -> Any:
    return [k for k in work(path) if "flash_fwd" in k.name][9]


FLASH = ("find", {"where": "kind=attention", "nth": 10})
EXPLAIN = ("kernel", lambda a: {"idx": row(a, "idx")})


def around(answers: Answers, what: str, name: str, place: int) -> Any:
    """A value of a neighbour that `kernel` lists."""
    return [each[name] for each in answers[-1]["rows"] if each["what"] == what][place]


NAVIGATING = [
    Question(NAVIGATE, "the next matrix product after the tenth attention kernel", GPUS,
             (*FLASH, "find", lambda a: {"where": "kind=gemm", "after": row(a, "idx"), "nth": 1}),
             lambda a: row(a, *AT), after(9, is_gemm)),
    Question(NAVIGATE, "the last NCCL kernel before the tenth attention kernel", GPUS,
             (*FLASH, "find", lambda a: {"where": "kind=communication", "before": row(a, "idx"),
                                         "nth": -1}),
             lambda a: row(a, "at_ns"),
             lambda p: [k for k in work(p)[: work(p).index(tenth_flash(p))]
                        if "nccl" in k.name][-1].start - work(p)[0].start),
    Question(NAVIGATE, "what runs before it on its stream, and after which gap", GPUS,
             (*FLASH, *EXPLAIN),
             lambda a: (around(a, "before", "at_ns", -1), around(a, "this", "gap_ns", 0)),
             lambda p: (lambda q, k: (q[q.index(k) - 1].start - work(p)[0].start,
                                      k.start - q[q.index(k) - 1].end))(
                 lane(p, tenth_flash(p)), tenth_flash(p))),
    Question(NAVIGATE, "what runs after it on its stream", GPUS, (*FLASH, *EXPLAIN),
             lambda a: (around(a, "after", "at_ns", 0), around(a, "after", "gpu_ns", 0)),
             lambda p: (lambda q, k: (q[q.index(k) + 1].start - work(p)[0].start,
                                      q[q.index(k) + 1].ns))(
                 lane(p, tenth_flash(p)), tenth_flash(p))),
    Question(NAVIGATE, "which call launched it, and how long before it started", GPUS,
             (*FLASH, *EXPLAIN),
             lambda a: tuple(a[-1]["kernel"]["launch"][name]
                             for name in ("call", "host_ns", "to_start_ns")),
             lambda p: (lambda c, k: (c.name, c.ns, k.start - c.start))(
                 launch_of(p, tenth_flash(p)), tenth_flash(p))),
    Question(NAVIGATE, "what did it wait for", GPUS, (*FLASH, *EXPLAIN),
             lambda a: (a[-1]["kernel"]["waited"]["for"], a[-1]["kernel"]["waited"]["ns"]),
             lambda p: (lambda c, q, k: (
                 "stream" if q[q.index(k) - 1].end > c.start else "launch", k.start - c.start))(
                 launch_of(p, tenth_flash(p)), lane(p, tenth_flash(p)), tenth_flash(p))),
    Question(NAVIGATE, "what runs on GPU 0 at 150 ms", GPUS,
             ("find", {"where": "device=0", "between": "150ms:150.001ms"}),
             lambda a: [each["at_ns"] for each in a[-1]["rows"]],
             lambda p: (lambda z: [k.start - z for k in work(p) if k.device == 0
                                   and k.start < z + 150_001_000 and k.end > z + 150 * MS])(
                 work(p)[0].start)),
    Question(NAVIGATE, "how many kernels run between 100 and 110 ms", GPUS,
             ("find", {"where": "kind!=mem*", "between": "100ms:110ms", "limit": 1}),
             lambda a: a[-1]["n_found"],
             lambda p: (lambda z: sum(k.start < z + 110 * MS and k.end > z + 100 * MS
                                      for k in kernels(p)))(work(p)[0].start)),
    Question(NAVIGATE, "the first kernel after 2 s", LM,
             ("find", {"between": "2s:", "nth": "1:2"}),
             lambda a: next(each["at_ns"] for each in a[-1]["rows"] if each["at_ns"] >= 0),
             lambda p: (lambda z: next(k.start - z for k in work(p) if k.end > z + 2000 * MS))(
                 work(p)[0].start)),
    Question(NAVIGATE, "which thread and process launched the longest kernel", TRAIN,
             ("kernel", {}),
             lambda a: (a[-1]["kernel"]["launch"]["thread"], a[-1]["kernel"]["process"]),
             lambda p: (lambda c: (c.thread, c.process))(
                 launch_of(p, max(work(p), key=lambda k: k.ns)))),
]  # fmt: skip


def idle_of(path: str, device: int) -> list[int]:
    """The gaps of a GPU."""
    busy = union(k for k in work(path) if k.device == device)
    return [b[0] - a[1] for a, b in pairwise(busy)]


BOTTLENECKS = [
    Question(BOTTLENECK, "the five kernels with the most time", GPUS,
             ("report", {"name": "summary", "options": {"by": "kernel", "where": "kind!=mem*"},
                         "sort": "gpu_ns", "limit": 5}),
             lambda a: [each["gpu_ns"] for each in a[-1]["rows"]],
             lambda p: [*sums(kernels(p), lambda k: k.name).values()][:5]),
    Question(BOTTLENECK, "the share of communication in the GPU time", GPUS,
             ("report", {"name": "summary", "options": {"by": "kind"}, "columns": ["all"]}),
             lambda a: round(by_key(a, "kind", "share")["communication"], 6),
             lambda p: round(total(lambda k: "nccl" in k.name)(p)
                             / total(lambda k: True)(p), 6)),
    Question(BOTTLENECK, "how many kernels take less than 10 us", GPUS,
             ("find", {"where": "kind!=mem*", "shorter": "10us", "limit": 1}),
             lambda a: a[-1]["n_found"], count(lambda k: k.ns < 10_000, kernels)),
    Question(BOTTLENECK, "how long is each GPU idle", GPUS,
             ("report", {"name": "idle"}),
             lambda a: a[-1]["total"]["ns"],
             lambda p: sum(sum(idle_of(p, device)) for device in (0, 1))),
    Question(BOTTLENECK, "the three longest gaps", GPUS,
             ("report", {"name": "idle", "options": {"gaps": 3}}),
             lambda a: [each["ns"] for each in a[-1]["rows"]],
             lambda p: sorted(idle_of(p, 0) + idle_of(p, 1), reverse=True)[:3]),
    Question(BOTTLENECK, "bytes and time of the copies from the host", UPLOAD,
             ("report", {"name": "copies", "options": {"by": "direction"}, "columns": ["all"]}),
             lambda a: by_key(a, "direction", "bytes", "time_ns")["HtoD"],
             lambda p: (sum(k.n_bytes for k in work(p) if k.direction == "HtoD"),
                        total(lambda k: k.direction == "HtoD")(p))),
    Question(BOTTLENECK, "the longest wait of the host for a stream", GPUS,
             ("find", {"of": "api", "where": "name=cudaStreamSynchronize", "sort": "wall_ns",
                       "limit": 1}),
             lambda a: row(a, "wall_ns"),
             longest(lambda c: c.name == "cudaStreamSynchronize", calls)),
    Question(BOTTLENECK, "how many launches take over 1 ms", LM,
             ("find", {"of": "api", "where": "name=cudaLaunchKernel", "longer": "1ms", "limit": 1}),
             lambda a: a[-1]["n_found"],
             count(lambda c: c.name == "cudaLaunchKernel" and c.ns >= MS, calls)),
    Question(BOTTLENECK, "the API call with the most time", TRAIN,
             ("report", {"name": "stats", "options": {"names": ["cuda_api_sum"]}, "limit": 1,
                         "columns": ["all"]}),
             lambda a: [each for each in a[-1]["rows"][0].values() if isinstance(each, str)],
             lambda p: [next(iter(sums(calls(p), lambda c: c.name)))]),
    Question(BOTTLENECK, "how busy are the GPUs", UPLOAD,
             ("report", {"name": "idle"}),
             lambda a: round(sum(each["busy_ns"] for each in a[-1]["gpus"]) / 1e6),
             lambda p: round(sum(end - start for device in (0, 1) for start, end in
                                 union(k for k in work(p) if k.device == device)) / 1e6)),
]  # fmt: skip


def named(name: str) -> Callable[[Any], bool]:
    return lambda each: each.name == name


def window(at: int, length: int) -> str:
    """The option `trim` for an interval."""
    return f"{at}ns:{at + length}ns"


def nth_range(path: str, name: str, n: int) -> Any:
    return [range_ for range_ in ranges(path) if range_.name == name][n]


NVTX_QUESTIONS = [
    Question(NVTX, "how many ranges computing softmax are there", LM,
             ("find", {"of": "ranges", "where": "name=computing softmax", "limit": 1}),
             lambda a: a[-1]["n_found"], count(named("computing softmax"), ranges)),
    Question(NVTX, "the longest range final matmul", LM,
             ("find", {"of": "ranges", "where": "name=final matmul", "sort": "wall_ns",
                       "limit": 1}),
             lambda a: row(a, "wall_ns"), longest(named("final matmul"), ranges)),
    Question(NVTX, "GPU time and kernels of the third range Backward", TRAIN,
             ("find", {"of": "ranges", "where": "name=Backward", "nth": 3}),
             lambda a: (row(a, "wall_ns"), row(a, "gpu_ns"), row(a, "kernels")),
             lambda p: (lambda r, rows: (r.ns, sum(k.ns for k in rows), len(rows)))(
                 nth_range(p, "Backward", 2), launched_in(p, nth_range(p, "Backward", 2)))),
    Question(NVTX, "the time of all ranges Forward", TRAIN,
             ("report", {"name": "ranges", "options": {"flat": True}, "columns": ["all"],
                         "limit": 100}),
             lambda a: sum(each["wall_ns"] for each in a[-1]["rows"] if each["name"] == "Forward"),
             total(named("Forward"), ranges)),
    Question(NVTX, "the longest kernel launched in the fourth range Backward", TRAIN,
             ("find", {"of": "ranges", "where": "name=Backward", "nth": 4},
              "find", lambda a: {"trim": window(row(a, "at_ns"), row(a, "wall_ns")),
                                 "sort": "gpu_ns", "limit": 1}),
             lambda a: row(a, *AT),
             lambda p: (lambda k: (k.start - work(p)[0].start, k.ns))(
                 max(launched_in(p, nth_range(p, "Backward", 3)), key=lambda k: k.ns))),
    Question(NVTX, "how long is benchmark_loop", LM,
             ("find", {"of": "ranges", "where": "name=benchmark_loop"}),
             lambda a: row(a, *WALL), nth(0, named("benchmark_loop"), ranges)),
    Question(NVTX, "which range is around the fourth computing softmax, how deep is it", LM,
             ("find", {"of": "ranges", "where": "name=computing softmax", "nth": 4}),
             lambda a: row(a, "parent", "level"),
             lambda p: (lambda r, outer: (max(outer, key=lambda o: o.start).name, len(outer)))(
                 nth_range(p, "computing softmax", 3),
                 [o for o in ranges(p) if o.thread == nth_range(p, "computing softmax", 3).thread
                  and o.start < nth_range(p, "computing softmax", 3).start
                  and o.end >= nth_range(p, "computing softmax", 3).end])),
    Question(NVTX, "the ranges between 0 and 100 ms after the first work", TRAIN,
             ("find", {"of": "ranges", "where": "kind=user", "between": "0:100ms", "limit": 1}),
             lambda a: a[-1]["n_found"],
             lambda p: (lambda z: sum(r.start < z + 100 * MS and r.end > z for r in ranges(p)))(
                 work(p)[0].start)),
    Question(NVTX, "the 67th range ncclSend", GPUS,
             ("find", {"of": "ranges", "where": "name=ncclSend", "nth": 67}),
             lambda a: row(a, *WALL), nth(66, named("ncclSend"), ranges)),
    Question(NVTX, "how long is each ProfilerStep", RESNET,
             ("find", {"of": "ranges", "where": "name=ProfilerStep*"}),
             lambda a: sorted(each["wall_ns"] for each in a[-1]["rows"]),
             lambda p: sorted(event["dur"] * 1000 for event in complete(p, "operator")
                              if event["name"].startswith("ProfilerStep"))),
]  # fmt: skip


def stream_of(k: Any) -> tuple[int, int]:
    return (k.device, k.stream)


STREAM_QUESTIONS = [
    Question(STREAMS, "which streams are used, with how much work", GPUS,
             ("report", {"name": "summary", "options": {"by": "device,stream"},
                         "columns": ["all"]}),
             lambda a: {(each["device"], each["stream"]): each["gpu_ns"] for each in a[-1]["rows"]},
             lambda p: sums(work(p), stream_of)),
    Question(STREAMS, "the stream with the most GPU time", V100,
             ("report", {"name": "summary", "options": {"by": "stream"}, "sort": "gpu_ns",
                         "limit": 1, "trim": None}),
             lambda a: row(a, "stream"),
             lambda p: next(iter(sums(work(p), lambda k: k.stream)))),
    Question(STREAMS, "the first and the last kernel of stream 15", GPUS,
             ("find", {"where": "stream=15", "nth": 1}, "find",
              lambda a: {"where": "stream=15", "nth": -1}),
             lambda a: (row(a, "at_ns", of=0), row(a, "at_ns", of=1)),
             lambda p: (lambda z, rows: (rows[0].start - z, rows[-1].start - z))(
                 work(p)[0].start, [k for k in work(p) if k.stream == 15])),
    Question(STREAMS, "the longest kernel of stream 7 on GPU 0", UPLOAD,
             ("find", {"where": ["stream=7", "device=0", "kind!=mem*"], "sort": "gpu_ns",
                       "limit": 1}),
             lambda a: row(a, "gpu_ns"),
             lambda p: max(k.ns for k in kernels(p) if stream_of(k) == (0, 7))),
    Question(STREAMS, "the copies by stream", UPLOAD,
             ("report", {"name": "summary", "options": {"by": "stream", "where": "kind=memcpy"},
                         "columns": ["all"]}),
             lambda a: by_key(a, "stream", "gpu_ns"),
             lambda p: sums((k for k in work(p) if k.direction in ("HtoD", "DtoH", "DtoD")),
                            lambda k: k.stream)),
    Question(STREAMS, "how many kernels run on each stream", V100,
             ("report", {"name": "summary", "options": {"by": "stream", "where": "kind!=mem*"},
                         "columns": ["stream", "kernels"], "limit": 50}),
             lambda a: by_key(a, "stream", "kernels"),
             lambda p: {s: sum(k.stream == s for k in kernels(p))
                        for s in {k.stream for k in kernels(p)}}),
    Question(STREAMS, "on which stream does NCCL run", V100,
             ("report", {"name": "summary", "options": {"by": "stream",
                                                        "where": "kind=communication"}}),
             lambda a: {each["stream"] for each in a[-1]["rows"]},
             lambda p: {k.stream for k in work(p) if "nccl" in k.name}),
    Question(STREAMS, "what runs beside the longest copy on other streams", UPLOAD,
             ("find", {"where": "kind=memcpy", "sort": "gpu_ns", "limit": 1},
              "kernel", lambda a: {"idx": row(a, "idx")}),
             lambda a: sum(each["what"] == "beside" for each in a[-1]["rows"]),
             lambda p: (lambda c: min(10, sum(
                 k.device == c.device and k.stream != c.stream and k.start < c.end
                 and k.end > c.start for k in work(p))))(
                 max((k for k in work(p) if k.direction in ("HtoD", "DtoD")),
                     key=lambda k: k.ns))),
]  # fmt: skip


def median(numbers: list[int]) -> float:
    ordered, half = sorted(numbers), len(numbers) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def of_name(path: str, name: str) -> list[int]:
    return [k.ns for k in work(path) if name in k.name]


def steps(path: str) -> list[int]:
    """The durations of ProfilerStep."""
    result = complete(path, "operator", "user_annotation")
    return [event["dur"] * 1000 for event in result if event["name"].startswith("ProfilerStep")]


def launched_from(path: str, begin: int, end: int) -> list[Any]:
    """The work that is launched between two times since the first work."""
    rows = work(path)
    at = {(call.process, call.correlation): call.start for call in reversed(calls(path))}
    zero = rows[0].start
    return [
        each
        for each in rows
        if begin <= at.get((each.process, each.correlation), each.start) - zero < end
    ]


def first_product(path: str) -> int:
    """FLOPs of the first addmm of the forward pass, by the sizes of its event."""
    event = min(
        (each for each in complete(path, "cpu_op") if each["name"] == "aten::addmm"),
        key=lambda each: each["ts"],
    )
    (m, k), (_, n) = event["args"]["Input Dims"][1:3]
    return int(2 * m * n * k)


ANALYSES = [
    Question(ANALYSIS, "median, shortest and longest time of the attention kernel", GPUS,
             ("report", {"name": "summary", "options": {"by": "kernel", "where": "kind=attention"},
                         "columns": ["all"]}),
             lambda a: row(a, "median_ns", "min_ns", "max_ns"),
             lambda p: (lambda t: (median(t), min(t), max(t)))(of_name(p, "flash_fwd"))),
    Question(ANALYSIS, "is the longest product an outlier among those of its name", LM,
             ("find", {"where": "kind=gemm", "sort": "gpu_ns", "limit": 1}, *EXPLAIN),
             lambda a: tuple(a[-1]["kernel"]["same_name"][name]
                             for name in ("kernels", "median_ns", "max_ns")),
             lambda p: (lambda t: (len(t), median(t), max(t)))(
                 of_name(p, max((k for k in work(p) if is_gemm(k)), key=lambda k: k.ns).name))),
    Question(ANALYSIS, "the mean time of a step", RESNET, ("report", {"name": "steps"}),
             lambda a: a[-1]["steps"]["mean_ns"],
             lambda p: approx(sum(steps(p)) / len(steps(p)), rel=0.05)),
    Question(ANALYSIS, "did four loader workers help, and how much", RESNET,
             ("diff", {"before": RESNET, "after": LOADERS}),
             lambda a: (a[-1]["wall"]["verdict"], a[-1]["wall"]["change"]),
             lambda p: (lambda b, c: ("faster", approx(c / b - 1, rel=0.1)))(
                 sum(steps(p)) / len(steps(p)), sum(steps(LOADERS)) / len(steps(LOADERS)))),
    Question(ANALYSIS, "how many copies from GPU to host are there", UPLOAD,
             ("find", {"where": "direction=DtoH", "limit": 1}),
             lambda a: a[-1]["n_found"], count(lambda k: k.direction == "DtoH")),
    Question(ANALYSIS, "the FLOPs of the first addmm", DLRM,
             ("find", {"of": "calls", "where": ["op=linear", "dir=fprop"], "nth": 1}, *EXPLAIN),
             lambda a: a[-1]["kernel"]["cost"]["flops"],
             first_product),
    Question(ANALYSIS, "the rate of the longest copy from the host", UPLOAD,
             ("find", {"where": "direction=HtoD", "sort": "gpu_ns", "limit": 1}, *EXPLAIN),
             lambda a: round(a[-1]["kernel"]["bytes_per_s"] / 1e6),
             lambda p: (lambda c: round(c.n_bytes / c.ns * 1e3))(
                 max((k for k in work(p) if k.direction == "HtoD"), key=lambda k: k.ns))),
    Question(ANALYSIS, "how many kernels are in the file", GPUS, ("info", {}),
             lambda a: sum(each["count"] for kind, each in a[-1]["work"].items()
                           if kind == "kernel"),
             lambda p: len(kernels(p))),
    Question(ANALYSIS, "the GPU time on stream 7 that is launched from 100 to 200 ms", GPUS,
             ("report", {"name": "summary", "options": {"by": "stream"}, "trim": "100ms:200ms",
                         "columns": ["all"]}),
             lambda a: by_key(a, "stream", "gpu_ns")[7],
             lambda p: sum(k.ns for k in launched_from(p, 100 * MS, 200 * MS) if k.stream == 7)),
    Question(ANALYSIS, "how many kernels has the capture", MI300,
             ("report", {"name": "summary", "options": {"by": "kind", "where": "kind!=mem*"},
                         "columns": ["all"], "limit": 100}),
             lambda a: sum(each["kernels"] for each in a[-1]["rows"]),
             lambda p: len(kernels(p))),
]  # fmt: skip

QUESTIONS = [
    *FINDING, *NAVIGATING, *BOTTLENECKS, *NVTX_QUESTIONS, *STREAM_QUESTIONS, *ANALYSES,
]  # fmt: skip

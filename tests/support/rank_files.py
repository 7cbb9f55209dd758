"""Builds the exports of an invented run: one file per rank, with known work.

Each rank runs CALLS times: a matrix product in each of LAYERS, then an all-reduce, for which it
waits for the others. Clocks differ. `costs` writes a file of costs that stops its process.
"""

from collections.abc import Collection
from pathlib import Path

from support.exports import Export

LAYERS = ("encoder", "head")
CALLS = 4
TIME, SLOW, TRANSFER = 100, 250, 50  # ns: a matrix product, on a slow rank; the all-reduce itself
PERIOD = 10_000
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
MARKER = (
    "{{'mod': '{}', 'op': '{}', 'args': ["
    "{{'name': '', 'type': 'tensor', 'shape': (8, 16), 'dtype': 'float32'}}, "
    "{{'name': '', 'type': 'tensor', 'shape': (4, 16), 'dtype': 'float32'}}]}}"
)
LINEAR = MARKER.format("torch.nn.functional", "linear")
FLOPS = 2 * 8 * 16 * 4


def export(
    rank: int, *, slow: bool = False, without: str | None = None, call: str = LINEAR, **others: int
) -> Export:
    """The export of one rank: `without` a layer, with `call` around its products."""
    out = Export()
    correlation = 0

    def launch(start: int, end: int, name: str) -> None:
        nonlocal correlation
        correlation += 1
        out.launch(start - 5, start - 4, corr=correlation, tid=1, **others)
        out.kernel(start, end, corr=correlation, name=name, **others)

    late = len(LAYERS) * SLOW
    for number in range(CALLS):
        now = rank * 1_000_003 + number * PERIOD
        done = now + late + 100
        for layer in LAYERS:
            if layer == without:
                continue
            duration = SLOW if slow else TIME
            out.push_pop(now, now + 50, f"layer:{layer}", tid=1, **others)
            out.push_pop(now + 1, now + 49, call, tid=1, **others)
            launch(now + 20, now + 20 + duration, "ampere_sgemm_128x64_tn")
            now += duration
        launch(now + 100, done + TRANSFER, ALL_REDUCE)
    return out


def run(
    folder: Path,
    n: int,
    *,
    slow: int | None = None,
    without: Collection[int] = (),
    stops: int | None = None,
) -> list[Path]:
    """The files of a run of n ranks: one of them slow, some without their last layer, the products
    of one are calls of `mine.stop`."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        export(
            rank,
            slow=rank == slow,
            without=LAYERS[-1] if rank in without else None,
            call=MARKER.format("mine", "stop") if rank == stops else LINEAR,
        ).write(folder / f"rank{rank}.sqlite")
        for rank in range(n)
    ]


def costs(path: Path, body: str, flag: Path) -> Path:
    """A file of costs, of `mine.stop`; `first` in its body is true once, of all processes."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    path.write_text(
        "import os, signal, time\n"
        "import fastprof\n\n"
        "def is_first():\n"
        "    try:\n"
        f"        open({str(flag)!r} + '.taken', 'x').close()\n"
        "    except FileExistsError:\n"
        "        return False\n"
        f"    with open({str(flag)!r} + '.part', 'w') as file:\n"
        "        file.write(str(os.getpid()))\n"
        f"    os.replace(file.name, {str(flag)!r})\n"
        "    return True\n\n"
        '@fastprof.op("mine", "stop")\n'
        "def stop(x: fastprof.Tensor, w: fastprof.Tensor):\n"
        "    first = is_first()\n"
        f"{lines}\n"
        "    return fastprof.Cost(1000, 0), 'stop'\n"
    )
    return path

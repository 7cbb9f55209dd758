"""Commands, outputs and Python code in the documents."""

import pickle
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.generate import generate

from fastprof.api.history import add_capture
from support import compiled_programs
from support.engine_files import engine_trace
from support.kineto_files import KinetoFile
from support.memory_snapshots import Snapshot, frames

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
             "examples/README.md", "python/fastprof/skills/fastprof/SKILL.md")  # fmt: skip


class Block(NamedTuple):
    """A block between two lines of ```, and the line number of the first."""

    document: str
    line: int
    language: str
    text: str


class Command(NamedTuple):
    """A line of a shell."""

    document: str
    text: str


def blocks(document: str) -> list[Block]:
    """All blocks of a document, in order."""
    text = (ROOT / document).read_text()
    return [
        Block(document, text[: match.start()].count("\n") + 1, match[1], match[2])
        for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def commands() -> Iterator[Command]:
    """Every line of a shell that runs fastprof or `python -c`, and each `fastprof …` of a table."""
    seen = set()
    for document in DOCUMENTS:
        lines = [
            re.sub(r"\s+#\s.*", "", line)
            for block in blocks(document)
            if block.language == "sh"
            for line in block.text.splitlines()
        ]
        for row in rows_of_examples(document):
            lines += [code.replace(r"\|", "|") for code in re.findall(r"`(fastprof \w+ .*?)`", row)]
        for line in lines:
            if re.search(r"\bfastprof |^python -[cm] ", line) and line not in seen:
                seen.add(line)
                yield Command(document, line)


def rows_of_examples(document: str) -> list[str]:
    """The rows of the tables that have a column of examples."""
    text = (ROOT / document).read_text()
    tables = re.findall(r"^\|[^\n]*\| example \|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [row for table in tables for row in table.splitlines()]


def my_costs() -> str:
    """The file of costs that the guide shows."""
    (text,) = (b.text for b in blocks("docs/guide.md") if b.text.startswith("# my_costs.py\n"))
    return text


def write_files(folder: Path) -> None:
    """Every file that the documents' commands and Python read, under the name that they use."""
    for name in (".demo/net.sqlite", "net.sqlite", "demo.sqlite"):
        (folder / name).parent.mkdir(exist_ok=True)
        generate(folder / name, 1000, seed=1)
    generate(folder / "before.sqlite", 1000, seed=1)
    generate(folder / "after.sqlite", 1000, seed=2)
    (folder / "traces").mkdir()
    for rank in range(2):
        trace = KinetoFile(distributedInfo={"backend": "nccl", "rank": rank, "world_size": 4})
        trace.annotation(0, 950, "train 1")
        trace.op(0, 900, "aten::mm", dims=[[2, 3], [3, 4]], types=["float", "float"], seq=4)
        trace.launch(10, 20, corr=7).kernel(30, 400 + rank, corr=7)
        trace.write(folder / f"rank{rank}.json.gz")
        trace.write(folder / "traces" / f"rank{rank}.json.gz")
        trace.root["distributedInfo"]["rank"] = 2 + rank
        trace.write(folder / "traces" / f"net{rank}.pt.trace.json.gz")
    for name in ("net.json.gz", "lenet.json.gz"):
        trace.write(folder / name)
    engine_trace().write(folder / "engine.json.gz")
    snapshot = Snapshot()
    snapshot.allocate(4096, frames("train.py:7 main"))
    snapshot.write(folder / "snapshot.pickle")
    (folder / "my_costs.py").write_text(my_costs())
    write_graph(folder)
    write_compiled(folder)
    write_store(folder)


def write_compiled(folder: Path) -> None:
    """A trace of a compiled model, and the artefacts of torch.compile."""
    calls = [(graph, True) for graph in compiled_programs.graphs()[2:]]
    compiled_programs.write_trace(folder / "compiled.json", calls)
    shutil.copytree(compiled_programs.FOLDER, folder / "compiled")


def write_store(folder: Path) -> None:
    """A store of two captures."""
    for name, commit in (("before", "3b1c"), ("after", "4f2a")):
        tags = {"commit": commit, "branch": "main"}
        add_capture(folder / "perf.sqlite", folder / f"{name}.sqlite", tags)


def write_graph(folder: Path) -> None:
    """The launch of a graph of one kernel, and its capture."""
    replay = KinetoFile().launch(0, 10, 1, name="hipGraphLaunch").kernel(20, 30, 1, "gemm")
    replay.write(folder / "decode.json.gz")
    capture = KinetoFile().launch(0, 1, 1, name="hipStreamBeginCapture")
    capture.op(10, 40, "aten::mm", dims=[[2, 3], [3, 4]], types=["float", "float"])
    capture.launch(20, 30, 2, name="hipLaunchKernel", kernel="gemm")
    capture.launch(50, 51, 3, name="hipStreamEndCapture")
    node = {"graph node id": (3 << 32) | 1, "graph id": 3}
    replay = KinetoFile().launch(0, 10, 1, name="cudaGraphLaunch").kernel(20, 30, 1, **node)
    replay.write(folder / "graph.json")
    notes = {(3 << 32) | 1: [{"module_fqn": "layers.0.attention", "stage": "decode"}]}
    (folder / "annotations.pkl").write_bytes(pickle.dumps(notes))
    (folder / "capture_traces").mkdir()
    for path in (folder / "capture.json.gz", folder / "capture_traces" / "bs_2.json.gz"):
        capture.write(path)

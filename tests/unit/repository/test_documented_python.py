"""The Python in the documents runs, the blocks of a document in order."""

import ast
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from support import command_server, processes, torch_server
from support.documents import DOCUMENTS, Block, blocks, write_files
from support.hypothesis_profiles import IS_FULL

BLOCKS = [block for name in DOCUMENTS for block in blocks(name) if block.language == "python"]

# Requirements of a block, by text in it; other blocks run everywhere.
NEEDS = {
    "cudart()": "gpu",
    "fastprof.capture(": "gpu",
    "from torch.cuda import nvtx": "gpu",
    "lightning": "lightning",
    "fastprof.timer(": "torch",
    "fastprof.init()": "torch",
}
# Not run: the text that identifies them, and the reason.
NOT_RUN = {
    "distributed.Client(": "needs a Dask cluster (tests/unit/ranks/test_cluster.py has one)",
    "(x, approximate): gelu gelu_": "gelu has its formula already, and this is it",
}
# Definitions that the examples assume.
TRAINING = """\
import torch

model = torch.nn.Linear(4, 4)
block, x = model, torch.ones(2, 4)
batch, loader = x, [x] * 30

def train_step(batch):
    model(batch).sum().backward()
"""
TRAINER = """
from lightning.pytorch import LightningModule, Trainer as LightningTrainer

class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def training_step(self, batch):
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

model = Model()
loader = torch.utils.data.DataLoader(torch.ones(60, 4), batch_size=2)
model.train_dataloader = lambda: loader

def Trainer(**options):
    return LightningTrainer(accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, **options)
"""


def need(block: Block) -> str:
    return next((what for sign, what in NEEDS.items() if sign in block.text), "")


def without_what_is_not_run(block: Block) -> str:
    """The statements of a block, without those that are not run."""
    statements = [
        text
        for statement in ast.parse(block.text).body
        if (text := ast.get_source_segment(block.text, statement, padded=True))
        and not any(sign in decorated(block.text, statement) for sign in NOT_RUN)
    ]
    return "\n".join(statements)


def decorated(source: str, statement: ast.stmt) -> str:
    """The source of a statement, including its decorators."""
    first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
    return "\n".join(source.splitlines()[first - 1 : statement.end_lineno])


def run(folder: Path, needed: str, preamble: str, chosen: list[Block]) -> str:
    """The standard output of a program of blocks, in a process with torch where one is needed."""
    program = folder / f"documented_{needed or 'everywhere'}.py"
    parts = [f"# {each.document}:{each.line}\n{without_what_is_not_run(each)}" for each in chosen]
    main = "\n".join([preamble, *parts])
    body = "".join(f"    {line}\n" if line else "\n" for line in main.splitlines())
    program.write_text(f"def main():\n{body}\n\nif __name__ == '__main__':\n    main()\n")
    command = [*command_server.client(), command_server.PROGRAM, str(program)]
    if needed:
        command = torch_server.command(program)
    elif IS_FULL:  # the command server has imported more modules
        command = [sys.executable, str(program)]
    done = processes.ran(command, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_files(tmp_path)
    return tmp_path


@pytest.mark.parametrize("document", sorted({block.document for block in BLOCKS}))
def test_python_that_needs_no_torch_runs(folder: Path, document: str) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: pip install '.[pandas]'")
    chosen = [block for block in BLOCKS if block.document == document and not need(block)]
    assert chosen
    run(folder, "", 'import fastprof\np = fastprof.open("demo.sqlite")', chosen)


@pytest.mark.parametrize("needed", ["torch", "lightning", "gpu"])
def test_python_of_a_training_program_runs(folder: Path, needed: str) -> None:
    for package in ("torch", "nvtx", *(["lightning"] if needed == "lightning" else [])):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed: make test TORCH=2.13.0")
    if needed == "gpu":
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA GPU")
    preamble = TRAINING + (TRAINER if needed == "lightning" else "")
    chosen = [block for block in BLOCKS if need(block) == needed]
    assert chosen
    run(folder, needed, f"import fastprof\n{preamble}", chosen)


def test_what_is_not_run_is_shown_somewhere() -> None:
    shown = "\n".join(block.text for block in BLOCKS)
    assert [what for what in (*NOT_RUN, *NEEDS) if what not in shown] == []

"""`fastprof run` with programs of other libraries: `make test-programs`.

Each program runs twice at the same time: alone, where it lists the modules that it calls, and under
`fastprof run`. The outputs are equal, and the layers of the trace are these modules.
"""

import gzip
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import gloo_crashes
from support.waiting import PATIENCE

PROGRAMS = Path(__file__).with_name("run")
VISION = os.environ.get("FASTPROF_VISION")  # a directory with torchvision and timm
TWO = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
LAUNCH = (
    *("-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1", "--num_machines", "1"),
    *("--mixed_precision", "no", "--dynamo_backend", "no"),
)
FIRST, LAST = 3, 5
pytestmark = pytest.mark.skipif(
    "FASTPROF_PROGRAMS" not in os.environ, reason="takes minutes: make test-programs"
)


@dataclass(frozen=True)
class Program:
    """A program of more than `LAST` steps, and how it is started."""

    name: str
    package: str = "torch"
    before: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    by: str = "optimizer"
    ranks: int = 1

    def command(self):
        return [*self.before, str(PROGRAMS / f"{self.name}.py"), *self.arguments]


ALL = [
    Program("torchvision_resnet", "torchvision"),
    Program("timm_vit", "timm"),
    Program("trainer", "transformers", arguments=("out",)),
    Program("generate", "transformers", by="call"),
    Program("accelerated", "accelerate", before=LAUNCH),
    Program("lora", "peft"),
    Program("fit", "lightning"),
    Program("ddp", before=TWO, ranks=2),
    Program("fsdp", before=TWO, ranks=2),
    Program("compiled"),
]


@pytest.fixture(params=ALL, ids=lambda each: each.name)
def program(request):
    result = request.param
    is_vision = result.package in ("torchvision", "timm")
    if is_vision and not (VISION and Path(VISION, result.package).is_dir()):
        pytest.skip(f"{result.package} is not installed: make test-programs")
    if not is_vision and importlib.util.find_spec(result.package) is None:
        pytest.skip(f"{result.package} is not installed: make test-programs")
    return result


def started(words, folder, **environment):
    folder.mkdir()
    return subprocess.Popen(
        [sys.executable, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONHASHSEED": "0", **environment},
    )  # fmt: skip


def test_a_program_is_recorded_and_sees_no_change(program, tmp_path):
    added = {"PYTHONPATH": VISION} if program.package in ("torchvision", "timm") else {}
    called = tmp_path / "called.json"
    command = ["-m", "fastprof", "run", "--backend", "torch", "--steps", f"{FIRST}:{LAST}"]

    def run_both(folder):
        both = [
            started(program.command(), folder / "alone", CALLED_MODULES=str(called), **added),
            started([*command, *program.command()], folder / "recorded", **added),
        ]
        return [(*each.communicate(timeout=PATIENCE), each.returncode) for each in both]

    root, both = gloo_crashes.repeated(run_both, lambda both: both[0][1] + both[1][1], tmp_path)
    (output, errors, code), (recorded_output, recorded_errors, recorded_code) = both
    assert code == 0, errors
    assert recorded_code == 0, recorded_errors
    assert recorded_output == output
    (folder,) = (root / "recorded" / "fastprof-runs").iterdir()
    recorded = [
        process
        for process in json.loads((folder / "run.json").read_text())["processes"]
        if process["recordings"]
    ]
    assert [each["rank"] for each in recorded] == list(range(program.ranks)), recorded_errors
    for each in recorded:
        assert (each["steps"], each["by"], each["problem"]) == (LAST, program.by, None)
    wanted = set(json.loads(called.read_text())) if called.exists() else {"Sequential"}
    traces = sorted(folder.glob("trace*.json.gz"))
    assert len(traces) == program.ranks
    for trace in traces:
        with gzip.open(trace) as file:
            names = {str(event.get("name")) for event in json.load(file)["traceEvents"]}
        assert {
            name.removeprefix("layer:") for name in names if name.startswith("layer:")
        } == wanted
        steps = {name for name in names if name.startswith("ProfilerStep#")}
        assert steps == {f"ProfilerStep#{number}" for number in range(FIRST, LAST)}
    assert (folder / "report.html").exists()

"""Traces of calls with a kernel each, and the scripts of `fastprof repro` that repeat them."""

import subprocess
from pathlib import Path
from typing import Any

from support import processes, torch_server
from support.kineto_files import KinetoFile

US = 1000


class Calls(KinetoFile):
    """A trace of calls, one after the other, each with a kernel of a number of us."""

    n = 0

    def call(
        self, name: str, dims: list[Any], types: list[str], us: int = 10, *, strides: Any = None,
        concrete: list[str] | None = None, seq: int | None = None, kernel: str | None = None,
    ) -> "Calls":  # fmt: skip
        self.n += 1
        at = self.n * 1000 * US
        more = {"Input Strides": strides, "Concrete Inputs": concrete}
        more = {key: value for key, value in more.items() if value is not None}
        self.op(at, at + 50 * US, name, dims=dims, types=types, seq=seq, **more)
        self.launch(at + 10 * US, at + 12 * US, self.n)
        self.kernel(at + 20 * US, at + (20 + us) * US, self.n, kernel or f"kernel_{self.n}")
        return self

    def backward(self, seq: int, us: int) -> "Calls":
        self.n += 1
        at = self.n * 1000 * US
        name = "autograd::engine::evaluate_function: MmBackward0"
        self.op(at, at + 50 * US, name, 2, seq=seq)
        self.launch(at + 10 * US, at + 12 * US, self.n, tid=2)
        self.kernel(at + 20 * US, at + (20 + us) * US, self.n, f"kernel_{self.n}")
        return self


def ran(text: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the text of a script, in a fork of a process that has imported torch."""
    path = folder / "repro.py"
    path.write_text(text)
    return torch_server.run(path, *options)


def repeated(text: str, folder: Path, *, is_alone: bool = False) -> str:
    """What the script prints on a CPU; it must succeed.

    is_alone : in a new interpreter, which has imported nothing that the script does not import
    """
    options = ("--device", "cpu", "--repeats", "2")
    done = ran(text, folder, *options)
    if is_alone:
        done = processes.python(folder / "repro.py", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout

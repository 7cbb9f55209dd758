"""Traces of calls with a kernel each, and the scripts of `fastprof repro` that repeat them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

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


def repeated(text: str, folder: Path, *options: str) -> str:
    """What the script prints on a CPU; it must succeed."""
    path = folder / "repro.py"
    path.write_text(text)
    run = subprocess.run(
        [sys.executable, str(path), "--device", "cpu", "--repeats", "2", *options],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout

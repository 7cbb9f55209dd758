"""What is run: programs with the options that mend or worsen them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PROGRAMS = Path(__file__).parent / "programs"


def file_name(case: str) -> str:
    """The name of a case in names of files and runs."""
    return case.replace(" ", "-").replace("=", "-")


class Case(NamedTuple):
    """A program with options, as one name: `cv`, `cv workers pin`."""

    program: str
    flags: tuple[str, ...] = ()
    # What it may take, in seconds, with start and warm-up.
    seconds: float = 60

    @property
    def name(self) -> str:
        return " ".join((self.program, *self.flags))

    @property
    def arguments(self) -> list[str]:
        return ["--" + flag for flag in self.flags]

    @property
    def path(self) -> Path:
        return PROGRAMS / f"{self.program}.py"


def _each(program: str, *options: str) -> list[Case]:
    """The program by default, and with each of these groups of options."""
    return [Case(program), *(Case(program, tuple(option.split())) for option in options)]


STEPS = [
    *_each("small", "graph", "fused", "item", "big", "fused graph"),
    *_each("lm", "sdpa", "pad", "fused", "noclip", "sdpa pad fused noclip", "ckpt", "fp32",
           "fp32 tf32"),
    *_each("cv", "workers", "pin", "workers pin", "tf32", "amp", "cl", "amp cl", "none", "noitem",
           "fused", "nodata", "nodata tf32", "nodata amp", "nodata amp cl", "nodata fused",
           "nodata noitem", "nodata none", "workers pin amp cl none noitem fused"),
    *_each("vit", "amp", "fused", "amp fused"),
    *_each("lstm", "tf32"),
    *_each("serve", "batch=8"),
]  # fmt: skip

# Compilation takes its time.
COMPILED = [
    Case("small", ("compile",), 90), Case("lm", ("compile",), 120),
    Case("lm", ("sdpa", "compile"), 120), Case("cv", ("nodata", "compile"), 120),
    Case("serve", ("compile",), 120),
]  # fmt: skip

# Steps A:B that `fastprof run` records of them.
RECORDED = {
    Case("small"): "20:28", Case("lm"): "8:11", Case("cv"): "8:11", Case("vit"): "8:11",
    Case("lstm"): "8:11", Case("serve"): "4:5", Case("small", ("graph",)): "20:28",
    Case("cv", ("nodata",)): "8:11",
}  # fmt: skip
RECORDED_COMPILED = {Case("lm", ("compile",)): "8:11", Case("small", ("compile",)): "20:28"}

# Ways to record a launch-bound step.
RECORDERS = (
    "plain", "kineto_cuda", "kineto", "kineto_shapes", "kineto_shapes_stack", "cupti", "cupti_api",
    "fastprof_init", "fastprof_layers",
)  # fmt: skip

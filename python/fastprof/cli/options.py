"""Options that several commands share."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING, Any, Final

from fastprof._system.memory import EXPECTED, parse_size
from fastprof.cli.output import is_terminal
from fastprof.model.terminal import Colours

if TYPE_CHECKING:
    from fastprof.api.profile import Profile


def count(text: str) -> int:
    """A non-negative integer, as the type of an option."""
    if not re.fullmatch("[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"expected a non-negative integer, found {text!r}")
    return int(text)


def memory_size(text: str) -> str:
    """A size in bytes, as the type of an option."""
    if not parse_size(text):
        raise argparse.ArgumentTypeError(f"{EXPECTED}, found {text!r}")
    return text


def tag(text: str) -> tuple[str, str]:
    """KEY=VALUE, as the type of an option."""
    key, equals, value = text.partition("=")
    if not (key.strip() and equals):
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE such as commit=4f2a, found {text!r}")
    return key.strip(), value


def _glob(text: str) -> str:
    if not text.strip("./\\"):
        raise argparse.ArgumentTypeError(
            f"expected a file or folder pattern such as src/*, found {text!r}"
        )
    return text


def trimmed(profile: Profile, part: str | None) -> Profile:
    """The profile, of which a part counts; None for all."""
    return profile if part is None else profile.trim(part)


def colours_of(arguments: argparse.Namespace) -> Colours:
    """The colours that --color, NO_COLOR (no-color.org) and the terminal request."""
    if arguments.color == "auto":
        return Colours(is_terminal(arguments.output) and wants_colours())
    return Colours(arguments.color == "always")


def wants_colours() -> bool:
    """Whether the environment has nothing against colours on a terminal."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


# By name, as the arguments of add_argument.
_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--check": {
        "action": "store_true",
        "help": "count rows and GPU time again by independent means and compare; exit code 3 if "
        "they differ",
    },
    "--compiled": {
        "metavar": "DIR",
        "action": "append",
        "default": [],
        "help": "folder with artefacts of torch.compile, written with INDUCTOR_PROVENANCE=1 "
        "TORCH_TRACE=DIR, or its debug folder; lines, layers and summary then share the work of "
        "generated kernels among the source that they compute (repeatable)",
    },
    "--graph-annotations": {
        "metavar": "FILE",
        "help": "annotations of the nodes of CUDA graphs that the trace does not contain: pickle "
        "or JSON of what torch.cuda._graph_annotations.get_kernel_annotations returns",
    },
    "--graph-capture": {
        "metavar": "TRACE",
        "action": "append",
        "default": [],
        "help": "trace, or directory of traces, recorded while the program captured its CUDA or "
        "HIP graphs; it supplies operators, shapes, layers and source lines for replayed kernels "
        "(repeatable)",
    },
    "--memory": {
        "metavar": "SIZE",
        "type": memory_size,
        "help": "memory that fastprof may use, such as 64G, instead of what the machine has; also "
        "reads files that expand far more than a capture does",
    },
    "--mine": {
        "metavar": "GLOB",
        "type": _glob,
        "action": "append",
        "default": [],
        "help": "your own source files or folders, for the line column (repeatable; default: all "
        "files outside installed packages and the Python installation)",
    },
    "--ops": {
        "metavar": "FILE",
        "action": "append",
        "default": [],
        "help": "Python file that registers cost formulas for your own operators with fastprof.op "
        "(repeatable)",
    },
    "--trim": {
        "metavar": "A:B|RANGE",
        "help": "only this part of the capture: times since its first GPU work, such as 1.5s:4s or "
        "200ms:, or the name or glob pattern of your ranges, such as benchmark_loop (default: all "
        "but the start-up; --trim : for all)",
    },
    "--color": {
        "choices": ("auto", "always", "never"),
        "default": "auto",
        "help": "colours and bars (default: on a terminal, unless NO_COLOR is set)",
    },
    "--width": {
        "metavar": "N",
        "type": count,
        "help": "characters per line (default: the terminal's)",
    },
    "--output": {"metavar": "OUT", "help": "write to OUT instead of stdout"},
}
_SHORT: Final = {"--width": "-w", "--output": "-o"}


def add(parser: argparse._ActionsContainer, *names: str) -> None:
    """Add some of the options that several commands share, as `--ops`."""
    for name in names:
        flags = [_SHORT[name]] if name in _SHORT else []
        parser.add_argument(*flags, name, **_OPTIONS[name])

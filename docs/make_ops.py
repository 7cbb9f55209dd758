"""Write docs/ops.md and python/fastprof/ops/index.txt from the registry: `python docs/make_ops.py`.

With --index, print the index only.
"""

import pkgutil
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import fastprof.ops
from fastprof._system.output_file import output_file
from fastprof.ops import registry
from fastprof.ops.document import operators_page
from fastprof.ops.registry import FILE, PATTERN

PAGE = Path(__file__).parent / "ops.md"
HEAD = "# Written by docs/make_ops.py: module space operators; ~ expression space operator"


class Noted(dict[tuple[str, str], Any]):
    """Entries of the registry by (space, name); `modules` are those whose import made them."""

    modules: dict[tuple[str, str], str]

    def update(self, entries: Mapping[tuple[str, str], Any]) -> None:
        frame = sys._getframe(1)
        while frame.f_code.co_name != "<module>":
            frame = frame.f_back
        super().update(entries)
        self.modules.update(dict.fromkeys(entries, frame.f_globals["__name__"]))


def index() -> str:
    """The text of index.txt; no formula must be imported yet."""
    noted = registry._entries = Noted()
    noted.modules = {}
    prefix = f"{fastprof.ops.__name__}."
    for module in sorted(
        each.name for each in pkgutil.walk_packages(fastprof.ops.__path__, prefix)
    ):
        import_module(module)
    lines: dict[tuple[str, str], list[str]] = {}
    for (space, name), module in noted.modules.items():
        lines.setdefault((module.removeprefix(prefix), space), []).append(name)
    text = [" ".join([*key, *names]) for key, names in lines.items()]
    text += [" ".join([PATTERN, pattern, *key]) for pattern, key in registry.GENERATED.items()]
    return "\n".join([HEAD, *text, ""])


if __name__ == "__main__":
    written = index()
    if "--index" in sys.argv:
        sys.stdout.write(written)
    else:
        FILE.write_text(written)
        with output_file(PAGE) as file:
            file.write(operators_page().encode())

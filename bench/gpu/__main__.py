"""Measure on an NVIDIA GPU what a CPU cannot tell. Parts run alone, and go on where they ended."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from bench.gpu import page, parts, plan

DOCUMENT = Path("docs/measured.md")


def _print_plan(names: list[str]) -> None:
    """What would be run, without a GPU."""
    cases = {
        "steps": [case.name for case in plan.STEPS],
        "record": [f"{case.name}, steps {steps}" for case, steps in plan.RECORDED.items()],
        "compiled": [case.name for case in plan.COMPILED],
        "overhead": plan.RECORDERS,
    }
    for name in names:
        print(f"{name}: {parts.HELP[name]}")
        for case in cases.get(name, ()):
            print(f"    {case}")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu", description=__doc__,
        epilog="\n".join(f"{name:10} {text}" for name, text in parts.HELP.items())
        + "\npage       write docs/measured.md from the folder",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("parts", nargs="*", metavar="PART", help="default: all, then the page")
    parser.add_argument(
        "-o", "--out", type=Path, default=Path("bench/out/gpu"),
        help="folder of results (default: bench/out/gpu)",
    )  # fmt: skip
    parser.add_argument("--limit", type=float, default=3600, help="seconds for all parts")
    parser.add_argument("--dry-run", action="store_true", help="print what would be run")
    options = parser.parse_args()
    unknown = sorted(set(options.parts) - {*parts.PARTS, "page"})
    if unknown:
        parser.error(f"parts are {', '.join(parts.PARTS)} and page; found {', '.join(unknown)}")
    names = options.parts or [*parts.PARTS, "page"]
    measured = [name for name in names if name != "page"]
    if options.dry_run:
        _print_plan(measured)
        return 0
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # So that torch counts GPUs without initialising CUDA, after which no fork could use it.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    if measured:
        parts.measure(measured, options.out, options.limit)
    if "page" in names:
        DOCUMENT.write_text(page.page(options.out))
        print(DOCUMENT)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

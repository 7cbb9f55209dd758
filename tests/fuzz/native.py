"""The C readers under a coverage-guided fuzzer and sanitizers: `python -m fuzz.native --help`.

The targets in native/ have libFuzzer's entry point. A clang with libFuzzer uses that; for other
compilers, native/driver.c is a small replacement.
"""

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from fuzz.corpus import corpus
from support import processes, sqlite_files

HERE = Path(__file__).resolve().parent / "native"
CHECKS = HERE.parent.parent / "csrc"
CSRC = HERE.parents[2] / "csrc"
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
FLAGS = ("-std=c11", "-g", "-O1", f"-I{CSRC}", f"-I{CHECKS}", *SANITIZE)
# The C files of each target, as patterns in csrc/.
TARGETS = {
    "kineto": ("kineto/*.c", "text/fp_json.c", "text/fp_names.c", "base/*.c"),
    "records": ("text/fp_records.c", "text/fp_json.c", "text/fp_names.c", "base/*.c"),
    "dict": ("text/fp_dict.c", "text/fp_names.c"),
    "names": ("text/fp_names.c",),
    "pages": ("scan/*.c", "text/fp_json.c", "text/fp_names.c", "base/*.c"),
}
LONGEST = 1 << 16  # bytes of an input
_LINES = 30  # the last output lines of a target before a crash
NAMES = (
    "aten::mm, seq = 7, op_id = 9, sizes = [[2, 3], []], input_op_ids = [(5, 0), (0, -1)]\n"
    "a, seq = 9223372036854775807\nb, op_id = 1\nc, sizes = [[]]\nlayer:x\n\n",
)


# The driver detects errors of either sanitizer by an abort.
_OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "abort_on_error=1"}


class BuildError(Exception):
    """The compiler cannot build a target; the message is its output."""


def compiler() -> str:
    """The C compiler: $CC, else gcc."""
    return os.environ.get("CC", "gcc")


@functools.cache
def has_libfuzzer() -> bool:
    """Whether the compiler has libFuzzer."""
    return _compiles(("-fsanitize=fuzzer",), "int LLVMFuzzerTestOneInput(void) { return 0; }")


@functools.cache
def why_not() -> str | None:
    """The reason why targets cannot be built, or None."""
    if has_libfuzzer():
        return None
    if _compiles((*SANITIZE, "-fsanitize-coverage=trace-pc"), "int main(void) { return 0; }", "-c"):
        return None
    return f"{compiler()} has neither libFuzzer nor sanitizers and -fsanitize-coverage=trace-pc"


def _compiles(flags: Sequence[str], text: str, *more: str) -> bool:
    command = [compiler(), *flags, *more, "-x", "c", "-", "-o", os.devnull]
    try:
        return processes.ran(command, input=text).returncode == 0
    except OSError:
        return False


def build(target: str, folder: Path) -> Path:
    """Build the program of a target in a folder.

    Raises
    ------
    BuildError
    """
    patterns = TARGETS.get(target, ())
    sources = [HERE / f"{target}.c", *(path for name in patterns for path in CSRC.glob(name))]
    program = folder / target
    if has_libfuzzer():
        _call([compiler(), *FLAGS, "-fsanitize=fuzzer", *sources, "-o", program])
        return program
    driver = folder / "driver.o"
    _call([compiler(), "-std=c11", "-O2", "-c", HERE / "driver.c", "-o", driver])
    _call([compiler(), *FLAGS, "-fsanitize-coverage=trace-pc", *sources, driver, "-o", program])
    return program


def _call(command: Sequence[str | Path]) -> None:
    done = processes.ran(command)
    if done.returncode:
        raise BuildError(f"{' '.join(map(str, command))}:\n{done.stderr}")


def run(
    program: Path, inputs: Sequence[bytes], seconds: float, seed: int = 1
) -> subprocess.CompletedProcess[str]:
    """Run a target; if it fails, the input is in its folder in a file `crash-*`."""
    given = program.parent / f"{program.name}.corpus"
    given.mkdir(exist_ok=True)
    for i, content in enumerate(inputs):
        (given / str(i)).write_bytes(content[:LONGEST])
    words = [f"-max_total_time={seconds:.0f}", f"-seed={seed}"]
    words += [str(given)] if has_libfuzzer() else [str(path) for path in sorted(given.iterdir())]
    options = {"env": os.environ | _OPTIONS, "errors": "replace", "timeout": None}
    return processes.ran([program, *words], cwd=program.parent, **options)


def inputs_of(target: str) -> list[bytes]:
    """The initial corpus of a target: small files, for many short runs."""
    if target == "pages":
        return [*_databases()]
    seeds = corpus(real=False)
    if target == "dict":
        return [line + b"\n" for line in seeds["dict"].content.splitlines()[:6]]
    if target == "kineto":
        root = json.loads(seeds["kineto"].content)
        events = root.pop("traceEvents")
        parts = [{**root, "traceEvents": events[i : i + 3]} for i in range(0, 18, 3)]
        return [json.dumps(part).encode() for part in [*parts, events[:4]]]
    if target == "records":
        (process, other) = json.loads(seeds["rocprof"].content)["rocprofiler-sdk-tool"]
        kept = {key: process[key] for key in ("metadata", "kernel_symbols", "buffer_records")}
        kept["strings"] = {"marker_api": process["strings"]["marker_api"][:3]}
        kept["buffer_records"] = {
            key: records[:2] for key, records in process["buffer_records"].items()
        }
        parts = [[kept], [kept, {"buffer_records": other["buffer_records"]}]]
        return [json.dumps({"rocprofiler-sdk-tool": part}).encode() for part in parts]
    return [text.encode() for text in NAMES]


def _databases() -> Iterator[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        for number in range(12):
            path = sqlite_files.make(Path(folder) / str(number), number, page_size=512)
            yield path.read_bytes()


def main() -> int:
    """Run the command; the exit code is 1 if a target crashed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.native", description=__doc__)
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=60, help="for each (default: 60)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    reason = why_not()
    if reason is not None:
        sys.exit(reason)
    failed = 0
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for target in arguments.targets or TARGETS:
        program = build(target, folder)
        done = run(program, inputs_of(target), arguments.seconds, arguments.seed)
        failed += done.returncode != 0
        said = (done.stdout + done.stderr).strip()
        lines = said.splitlines()[-1 if done.returncode == 0 else -_LINES :]
        print(f"{target}: " + "\n".join(lines), flush=True)
    if failed:
        print(f"the inputs are in {folder}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

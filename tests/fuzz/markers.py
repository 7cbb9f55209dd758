"""The readers of range names under atheris, a coverage-guided fuzzer of Python code:

    python -m fuzz.markers -max_total_time=60     (any option of libFuzzer)

Needs `pip install atheris`. tests/fuzz/test_markers.py runs a small part without it.
"""

import sys
import tempfile
from pathlib import Path

from fuzz.corpus import MODULE, STACK, TORCH_CALL

FIELD = "\x1f"
N_FIELDS = 10
SEEDS = (
    *(TORCH_CALL, MODULE, STACK, "layer:a:b", "\x01aten::mm, sizes = [[2, 3], [3, 4]]"),
    *("autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0", "ProfilerStep#3"),
    "cpu_op\x1fa.py(3): f;b.py(4): g\x1fnet\x1faten::mm\x1f[[2, 3], []]\x1f"
    '["float", "Scalar"]\x1f[[3, 1], []]\x1f["", "[1, 0.5, True]"]',
    'cpu_op numbered\x1f\x1f\x1fnccl:all_reduce\x1f\x1f\x1f\x1f\x1f"dtype": "Float", "Rank": 3\x1f',
    "python_function\x1f\x1f\x1fnn.Module: Conv2d_0\x1f\x1f\x1f\x1f\x1f\x1f",
)


def check(text: str) -> None:
    """Read a text in every way; every text must have a meaning, without an exception."""
    from fastprof.model.markers import Kind, Meaning, op_name, read, read_event

    for suffix in (False, True):
        meaning = read(text, suffix)
        if not isinstance(meaning, Meaning) or not isinstance(meaning.kind, Kind):
            raise TypeError(f"{text!r} is read as {meaning!r}")
        op_name(meaning)
    fields = text.split(FIELD)  # an event always has all of them
    result = read_event(FIELD.join((fields + [""] * N_FIELDS)[:N_FIELDS]))
    if not isinstance(result, str | Meaning):
        raise TypeError(f"{text!r} is read as the event {result!r}")


def main() -> None:
    """Run until libFuzzer's limits or an exception."""
    import atheris

    with atheris.instrument_imports(include=["fastprof.model.markers", "fastprof.model.call"]):
        import fastprof.model.markers  # noqa: F401

    def test_one_input(data: bytes) -> None:
        check(data.decode("utf-8", "surrogateescape"))

    with tempfile.TemporaryDirectory() as folder:
        for i, text in enumerate(SEEDS):
            (Path(folder) / str(i)).write_text(text)
        crashes = f"-artifact_prefix={tempfile.gettempdir()}/"
        atheris.Setup([sys.argv[0], crashes, *sys.argv[1:], folder], test_one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()

"""Write python/fastprof/model/markers/aten_schemas.txt: the arguments of torch's own operators.

    python docs/make_schemas.py

The first line contains the version of the installed torch. Each other line is an operator of
namespace aten: its name, and a word for each overload that handles tensors, with a character per
argument: T for a required tensor, O for an output tensor, ? for an argument that may contain
tensors, `.` for a required argument of another type, `,` for one that may be absent or None.
"""

from __future__ import annotations

from pathlib import Path

import torch

FILE = Path(__file__).resolve().parents[1] / "python/fastprof/model/markers/aten_schemas.txt"


def lines() -> list[str]:
    """All lines except the first."""
    forms: dict[str, set[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        arguments = schema.arguments
        types = [str(argument.type) for argument in arguments]
        results = [str(result.type) for result in schema.returns]
        if space == "aten" and any("Tensor" in each for each in (*types, *results)):
            form = "".join(_kind(argument) for argument in arguments)
            forms.setdefault(name, set()).add(form)
    return [
        f"{name} {' '.join(sorted(forms[name], key=_order))}".rstrip() for name in sorted(forms)
    ]


def _kind(argument: torch._C.Argument) -> str:
    text = str(argument.type)
    if text == "Tensor":
        return "O" if argument.is_out else "T"
    if "Tensor" in text:
        return "?"
    return "," if argument.has_default_value() or text.startswith("Optional") else "."


def _order(form: str) -> tuple[int, str]:
    return -len(form), form


if __name__ == "__main__":
    version = torch.__version__.split("+")[0]
    FILE.write_text("\n".join([f"# torch {version}", *lines(), ""]))

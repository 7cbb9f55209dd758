"""Writes python/fastprof/model/markers/aten_schemas.txt: the arguments of torch's own operators.

    python docs/make_schemas.py

A line an operator of namespace aten, of the torch that is installed: its name, and for each
overload that handles tensors a text with a character an argument: T for a tensor that must be
given, O for one that takes the result, ? for what may hold tensors, `.` for any other. The first
line says which torch.
"""

from __future__ import annotations

from pathlib import Path

import torch

FILE = Path(__file__).resolve().parents[1] / "python/fastprof/model/markers/aten_schemas.txt"


def lines() -> list[str]:
    """The lines of the file, without the first."""
    forms: dict[str, set[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        arguments = schema.arguments
        types = [str(argument.type) for argument in arguments]
        results = [str(result.type) for result in schema.returns]
        if space == "aten" and any("Tensor" in each for each in (*types, *results)):
            outs = ["O" if argument.is_out else "T" for argument in arguments]
            pairs = zip(types, outs, strict=True)
            form = "".join(_kind(each, out) for each, out in pairs)
            forms.setdefault(name, set()).add(form)
    return [
        f"{name} {' '.join(sorted(forms[name], key=_order))}".rstrip() for name in sorted(forms)
    ]


def _kind(text: str, tensor: str) -> str:
    if text == "Tensor":
        return tensor
    return "?" if "Tensor" in text else "."


def _order(form: str) -> tuple[int, str]:
    return -len(form), form


if __name__ == "__main__":
    version = torch.__version__.split("+")[0]
    FILE.write_text("\n".join([f"# torch {version}", *lines(), ""]))

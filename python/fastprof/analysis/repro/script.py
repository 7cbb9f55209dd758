"""Writes the script of `fastprof repro`: the calls as data, below a fixed program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.analysis.registry import Where
from fastprof.analysis.repro.calls import Pass, Repeatable, repeatable_calls
from fastprof.analysis.repro.inputs import NotRepeatableError, Source, source_of
from fastprof.analysis.repro.variants import Variant, beyond, variants
from fastprof.analysis.roofline.utilisation import devices_with
from fastprof.errors import ReportError
from fastprof.model.heading import printable
from fastprof.profile.data import ProfileData
from fastprof.profile.facts import gpu_names

_MOST: Final = 200  # calls in a script
_PLACES: Final = regex(r"@(TITLE|GPU|CALLS)@")


class Script(NamedTuple):
    """A script that repeats calls.

    Parameters
    ----------
    text : Python source
    calls : how many calls it repeats
    share : their share of the GPU time of the selected work, 0 to 1
    refused : the calls of more lost time that it leaves out, a line for each operator and reason
    """

    text: str
    calls: int
    share: float
    refused: tuple[str, ...]


def script(
    profile: ProfileData,
    where: Where | None = None,
    call: int | None = None,
    top: int = 1,
    with_variants: bool = False,
    idx: int | None = None,
) -> Script:
    """A script that repeats the calls that lose most time against their ideal time.

    Parameters
    ----------
    where : which calls, see `fastprof.analysis.selection`
    call : only the call of this place in the order of lost time, from 1; None for the first `top`
    top : how many calls
    with_variants : also what the advice names for them
    idx : only the call that launched this kernel, as `fastprof prof` numbers it

    Raises
    ------
    ReportError
        No call can be repeated, or there is none of this number.
    """
    if idx is not None and not 1 <= idx <= len(profile):
        raise ReportError(f"idx: expected 1 to {len(profile)}, found {idx}")
    devices = devices_with(profile, None, None, None)
    calls, other = repeatable_calls(profile, devices, where, idx)
    if not calls and idx is not None:
        raise ReportError(f"idx: no call with recorded arguments launched kernel {idx}")
    if not calls:
        remedy = "select others" if where else "record with torch.profiler and record_shapes=True"
        raise ReportError(f"{profile.name}: no calls with recorded arguments; {remedy}")
    if call is not None and not 1 <= call <= len(calls):
        raise ReportError(f"call: expected 1 to {len(calls)}, found {call}")
    chosen, refused = _chosen(calls if call is None else calls[call - 1 : call], min(top, _MOST))
    if not chosen:
        raise ReportError(f"{profile.name}: no call can be repeated: {'; '.join([*refused][:3])}")
    total = sum(one.gpu_ns for one in calls) + other
    share = sum(one.gpu_ns for one, _ in chosen) / total if total else 0.0
    calls_text = f"{len(chosen)} call{'s' * (len(chosen) > 1)}"
    gpus = gpu_names(profile.about, profile.column("device"))
    values = {
        "TITLE": _comment(f"{calls_text} of {profile.name}, {share:.1%} of its GPU time."),
        "GPU": _comment(gpus or "an unnamed GPU"),
        "CALLS": "\n".join(
            _entry(one, source, gpus if with_variants else None) for one, source in chosen
        ),
    }
    text = _PLACES.sub(lambda place: values[place[1]], _template())
    lines = (f"{why} ({ns / total:.1%} of the GPU time)" for why, ns in refused.items())
    return Script(text, len(chosen), share, tuple(lines))


def _chosen(
    calls: Sequence[Repeatable], top: int
) -> tuple[list[tuple[Repeatable, Source]], dict[str, float]]:
    """The first calls that can be repeated, with their source; those before them that cannot.

    The others by operator and reason, with their GPU time in ns.
    """
    chosen: list[tuple[Repeatable, Source]] = []
    refused: dict[str, float] = {}
    for one in calls:
        if len(chosen) == top:
            break
        try:
            chosen.append((one, source_of(one.call, one.kernel)))
        except NotRepeatableError as reason:
            text = f"{one.call.mod}::{one.call.op}: {reason}"
            refused[text] = refused.get(text, 0.0) + one.gpu_ns
    return chosen, refused


def _entry(one: Repeatable, source: Source, gpus: str | None) -> str:
    """A call in the script. gpus : of the trace, for its variants; None without variants"""
    calls = max((p.calls for p in (one.forward, one.backward) if p is not None), default=0)
    lines = [
        f'"name": {f"{one.call.mod}::{one.call.op}"!r},',
        *_arguments(source),
        f'"calls": {calls},',
        f'"compute": {one.compute!r},',
        f'"result": {one.result},',
        *(
            f'"{name}": {_pass(recorded)},'
            for name, recorded in (("forward", one.forward), ("backward", one.backward))
        ),
    ]
    if not one.has_types:
        lines.append('"has_types": False,')
    if gpus is not None:
        result = variants(one.call, gpus, one.compute)
        if result:
            rows = [f"    {_variant(one, variant)}," for variant in result]
            lines += ['"variants": [', *rows, "],"]
        if beyond(one.call):
            lines.append(f'"beyond": {beyond(one.call)!r},')
    return "\n".join(["    {", *(f"        {line}" for line in lines), "    },"])


def _arguments(source: Source) -> Iterator[str]:
    yield f'"args": [{", ".join(source.args)}],'
    if source.named:
        yield f'"named": {_dict(source.named.items())},'
    if source.function:
        yield f'"function": {source.function!r},'
    if source.make:
        yield f'"make": {source.make!r},'


def _variant(one: Repeatable, variant: Variant) -> str:
    parts = {"title": repr(variant.name)}
    if variant.call.op != one.call.op:
        parts["name"] = repr(f"{variant.call.mod}::{variant.call.op}")
    if variant.call != one.call:
        source = source_of(variant.call, one.kernel)
        parts["args"] = f"[{', '.join(source.args)}]"
        if source.named:
            parts["named"] = _dict(source.named.items())
    if variant.setting:
        parts["setting"] = repr(variant.setting)
    if variant.useful < 1:
        parts["useful"] = f"{variant.useful:.4g}"
    return _dict(parts.items())


def _pass(recorded: Pass | None) -> str:
    if recorded is None:
        return "None"
    return _dict(_values(recorded))


def _dict(items: Iterable[tuple[str, str]]) -> str:
    """Source of a dictionary. items : names and expressions"""
    texts = ", ".join(f'"{name}": {value}' for name, value in items)
    return f"{{{texts}}}"


def _values(recorded: Pass) -> Iterator[tuple[str, str]]:
    for name, value in recorded._asdict().items():
        if name != "calls":
            yield name, "None" if value is None else f"{value:.6g}"


def _comment(text: str) -> str:
    """A text of the file that ends neither a string nor a line."""
    return printable(text).replace("\\", "/").replace('"', "'")


@cache
def _template() -> str:
    return (files("fastprof.analysis.repro") / "template.txt").read_text("utf-8")

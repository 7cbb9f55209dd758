"""What type checkers know of the public names: mypy --strict on small programs."""

import inspect
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

import fastprof
from fastprof.analysis.reports import all_reports
from fastprof.analysis.roofline.columns import ROOFS
from fastprof.api import report_options
from fastprof.api.profile import Profile
from fastprof.exports.registry import FORMATS
from support import processes

pytest.importorskip("mypy", reason="mypy is not installed: pip install '.[test]'")

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = Path(fastprof.__file__).parent

# Programs as users write them.
RIGHT = """
import numpy as np

import fastprof
from fastprof.model.table import Table

profile = fastprof.open("net.sqlite", mine=["train.py"])
table: Table = profile.summary(by=["layer"], where={"op": "linear"}, cpu=True)
table = profile.report("mine", anything=1)
table = profile.idle(5, by="line", min=2.0)
table = profile.lines(["train.py"], by="function")
table = profile.whatif(scale=["op=linear:0.5"], no_sync=True, roof="practical")
table = profile.trim(":").advise(1.0, fail_above=5)
profile.report(gpu="H100").save("page.html")
profile.export("net.pftrace", to="perfetto", steps="none")
profile.plot.roofline(by="layer", peak={"fp16": 1e15})
total: np.int64 = profile.kernels["flops"].sum()
difference = fastprof.diff("a.sqlite", profile, where=["op=linear"]).table("op")
both = fastprof.batch(["a.json", "b.json"], jobs=2).ranks
snapshot = fastprof.memory_snapshot("snapshot.pickle", by="line")

fastprof.init(enable_function_stack=True)
fastprof.uninit()
with fastprof.capture(wait=1, active=2, backend="torch", path="t.json") as capture:
    capture.step()
with fastprof.layer("block"), fastprof.timer("block"):
    pass
fastprof.timings()
fastprof.wrap(np, "dot")
name: str = fastprof.__version__


@fastprof.op("mylib", "scale(x, factor)")
def scale(x: fastprof.Tensor) -> fastprof.Cost:
    raise fastprof.CannotModel("x")


@fastprof.report("by_stream", "GPU time by stream", options=[fastprof.Option("least", "")])
def by_stream(profile: fastprof.Profile, least: float = 0.0) -> Table:
    return profile.summary(by="stream")


@fastprof.layer("head")
def head(x: int) -> str:
    return str(x)


text: str = head(1)
"""
WRONG = {
    "fastprof.nope()": "attr-defined",
    "fastprof.capture(backend='bad')": "arg-type",
    "fastprof.open(1)": "arg-type",
    "fastprof.init(enable_function_stack='yes')": "arg-type",
    "profile.idle(by='bad')": "arg-type",
    "profile.roofline(roof='bad')": "arg-type",
    "profile.export('x', to='bad')": "arg-type",
    "profile.summary(where=1)": "arg-type",
    "profile.report(nope=1)": "call-overload",
    "profile.plot.nope": "attr-defined",
    "profile.plot.roofline(nope=1)": "call-arg",
    "profile.nope": "attr-defined",
    "head('text')": "arg-type",
}


def public_uses() -> dict[str, str]:
    """A wrong use of each public function of fastprof, and of each method and property of Profile.

    A function whose type is unknown would permit it.
    """
    uses = {}
    for name in fastprof.__all__:
        value = getattr(fastprof, name)
        if not (inspect.isclass(value) and issubclass(value, Exception)) and callable(value):
            uses[f"fastprof.{name}(nope=1)"] = r"call-arg|call-overload"
    for name in dir(Profile):
        if name.startswith("_"):
            continue
        if callable(inspect.getattr_static(Profile, name)):
            uses[f"profile.{name}(nope=1)"] = r"call-arg|call-overload"
        else:
            uses[f"profile.{name}.nope"] = r"attr-defined|union-attr"
    for name in ("name", "about", "warnings", "names"):
        uses[f"profile.{name}.nope"] = r"attr-defined"
    return uses


USES = {**WRONG, **public_uses()}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, set[str]]]:
    """The codes of the errors of mypy --strict by program and line, with what `make lint` knows."""
    folder = tmp_path_factory.mktemp("mypy")
    kept, cache = ROOT / ".mypy_cache", folder / "cache"
    if kept.is_dir():
        shutil.copytree(kept, cache)
    programs = {"right.py": RIGHT, "wrong.py": "\n".join([RIGHT, *USES])}
    for name, text in programs.items():
        (folder / name).write_text(text)
    done = processes.python(
        *("-m", "mypy", "--strict", "--cache-dir", cache, *(folder / name for name in programs)),
        env=os.environ | {"MYPYPATH": str(PACKAGE.parent)},
        cwd=ROOT,  # its settings leave torch out, which takes half a minute
    )
    assert (done.returncode, done.stderr) == (1, "")
    codes: dict[str, dict[int, set[str]]] = {name: {} for name in programs}
    for file, line, code in re.findall(r"^(.+?):(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.M):
        assert Path(file).name in programs, done.stdout
        codes[Path(file).name].setdefault(int(line), set()).add(code)
    return codes


def test_right_programs_have_no_errors(errors: dict[str, dict[int, set[str]]]) -> None:
    assert errors["right.py"] == {}


def test_wrong_uses_are_errors(errors: dict[str, dict[int, set[str]]]) -> None:
    assert len(USES) > 60
    result, first = dict(errors["wrong.py"]), RIGHT.count("\n") + 2
    codes = {use: result.pop(first + i, set()) for i, use in enumerate(USES)}
    missed = {
        use: codes[use]
        for use, code in USES.items()
        if not any(re.fullmatch(code, each) for each in codes[use])
    }
    assert missed == {}
    assert result == {}


def options_of(method: Callable[..., object]) -> dict[str, object]:
    """The type of each option of a method, after `Unpack` of its TypedDict; None for its own."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    (packed,) = re.findall(r"Unpack\[report_options\.(\w+)\]", str(parameters[-1].annotation))
    own = {parameter.name: None for parameter in parameters[:-1]}
    return {**own, **get_type_hints(getattr(report_options, packed))}


def values_of(option: fastprof.Option) -> tuple[str, ...]:
    """The values of an option that has few."""
    return ROOFS if option.name == "roof" else tuple(str(option.metavar).split("|"))


METHOD_OF = {"ranges": "ranges_table"}
REPORTS = [name for name in all_reports() if isinstance(getattr(Profile, name, None), FunctionType)]


@pytest.mark.parametrize("name", [*REPORTS, *METHOD_OF])
def test_the_options_of_a_method_are_those_of_its_report(name: str) -> None:
    report = all_reports()[name]
    types = options_of(getattr(Profile, METHOD_OF.get(name, name)))
    assert sorted(types) == sorted(option.name for option in report.options)
    for option in report.options:
        if get_origin(types[option.name]) is Literal:
            assert get_args(types[option.name]) == values_of(option)


def test_the_options_of_export_are_those_of_its_formats() -> None:
    types = options_of(Profile.export)
    assert get_args(report_options.ExportFormat) == tuple(FORMATS)
    options = [option for format_ in FORMATS.values() for option in format_.options]
    assert {*types} == {"path", "to"} | {option.name for option in options}
    for option in options:
        if get_origin(types[option.name]) is Literal:
            assert get_args(types[option.name]) == values_of(option)


def test_the_backends_of_a_capture_are_those_there_are() -> None:
    pytest.importorskip("torch", reason="capture needs torch")
    from fastprof.annotate.capture import capture
    from fastprof.annotate.recorders import RECORDERS

    assert get_args(get_type_hints(capture)["backend"]) == tuple(RECORDERS)

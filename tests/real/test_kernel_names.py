"""The classification of every kernel name of the real traces equals a reviewed list."""

import ast
import ctypes
import gzip
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from fastprof.ops import KernelInfo, classify
from real.open_traces import events
from support.kernel_lists import read_list
from support.real_data import data_dir, open_read_only, real, traces

LONGEST = 120

# The name of GPU work, which follows its category.
KINETO_NAME = re.compile(
    rb'"cat"\s*:\s*"(?:[Kk]ernel|(?:gpu_)?[Mm]em(?:cpy|set))"\s*,\s*'
    rb'"name"\s*:\s*("(?:[^"\\]|\\.)*")'
)

ACTIVITIES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL")
NAME_COLUMNS = ("demangledName", "shortName", "mangledName", "name")
GPU_CATEGORIES = ("kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset")

# The text around the function that an elementwise kernel of ATen applies.
AROUND = re.compile(r"gpu_\w+|[AB]UnaryFunctor|BinaryFunctor")


def names_of_database(path: Path) -> set[str]:
    connection = open_read_only(path)
    try:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        tables = {name for (name,) in connection.execute(query)}
        strings = "StringIds" if "StringIds" in tables else "StringTable"
        names = set()
        for table in tables & set(ACTIVITIES):
            columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            texts = dict(connection.execute(f"SELECT * FROM {strings}"))
            for column in columns & set(NAME_COLUMNS):
                rows = connection.execute(f"SELECT DISTINCT {column} FROM {table}")
                names |= {texts[name] for (name,) in rows if name in texts}
        return names
    finally:
        connection.close()


def names_of_kineto(path: Path) -> set[str]:
    """By a pattern, in a tenth of the time of the json module."""
    texts = set(KINETO_NAME.findall(gzip.decompress(path.read_bytes())))
    return {json.loads(text, strict=False) for text in texts}


def names_of_dict_lines(path: Path) -> set[str]:
    lines = map(ast.literal_eval, path.read_text().splitlines())
    return {line[key] for line in lines for key in ("kShortName", "kLongName")}


READERS = {
    ".sqlite": names_of_database,
    ".sql": names_of_database,
    ".nvvp": names_of_database,
    ".gz": names_of_kineto,
    ".dict": names_of_dict_lines,
}


@pytest.fixture(scope="module")
def names() -> set[str]:
    directory = data_dir()
    if directory is None:
        pytest.skip("no real traces: set FASTPROF_DATA to their directory")
    result: set[str] = set()
    for path in sorted(directory.rglob("*")):
        if path.suffix in READERS and "rocpd" not in path.parts:
            result |= READERS[path.suffix](path)
    return result


@pytest.mark.parametrize("path", traces("kineto/*.json.gz"))
def test_the_pattern_finds_the_names_of_all_gpu_work(path: str) -> None:
    gpu = (event for event in events(path) if str(event.get("cat")).lower() in GPU_CATEGORIES)
    assert names_of_kineto(real(path)) == {event["name"] for event in gpu}


@pytest.fixture(scope="module")
def listed() -> dict[str, KernelInfo]:
    return read_list(Path(__file__).with_name("kernel_kinds.tsv"))


def short(name: str) -> str:
    """A kernel's key in the list: its function, and in <> further distinctions."""
    name = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", name)
    name = re.sub(r"^(?:void|std::enable_if<.*?>::type) ", "", name)
    function = re.split(r"[<(]", name, maxsplit=1)[0].strip()
    arguments = name[len(function) :]
    if function.endswith(("elementwise_kernel", "elementwise_kernel_manual_unroll")):
        inner = re.findall(r"at::native::(?:binary_internal::)?(\w+)", arguments)
        function += "".join(f"<{of}>" for of in [of for of in inner if not AROUND.match(of)][:1])
    elif re.search(r"::Kernel2?$", function):
        function += re.match(r"<\w+", arguments)[0] + ">"
    elif function.endswith("::trampoline_kernel"):
        function += "<" + re.search(r"::(\w+_impl)<", arguments)[1] + ">"
    return function[:LONGEST]


@cache
def demangler() -> Callable[..., bytes | None]:
    try:
        demangle = ctypes.CDLL("libstdc++.so.6")["__cxa_demangle"]
    except OSError:
        pytest.skip("no C++ library to demangle names with")
    demangle.restype = ctypes.c_char_p
    return demangle


def demangled(name: str) -> str:
    """The name demangled by the C++ library; unchanged if not mangled, or truncated."""
    if not name.startswith("_Z"):
        return name
    text = demangler()(name.encode(), None, None, None)
    return text.decode() if text else name


def test_every_name_is_in_the_list_and_is_what_that_says(names, listed):
    readable = sorted(name for name in names if not name.startswith("_Z"))
    assert len(readable) > 500
    assert sorted({short(name) for name in readable} - set(listed)) == []
    result = {name: classify(name) for name in readable}
    assert result == {name: listed[short(name)] for name in readable}


def test_mangled_names_are_what_the_list_says_of_them_demangled(names, listed):
    mangled = sorted(name for name in names if name.startswith("_Z"))
    assert len(mangled) > 100
    result = {name: classify(name) for name in mangled}
    assert result == {name: listed[short(demangled(name))] for name in mangled}


def test_the_list_has_nothing_but_names_of_the_traces(names, listed):
    assert set(listed) == {short(demangled(name)) for name in names}


def test_a_name_that_became_text_with_underscores_or_is_cut_off_is_still_known(names, listed):
    for name in names:
        if name.startswith("_Z"):
            continue
        assert classify(name.replace(" ", "_")) == classify(name), name
        assert classify(name[:590]) == classify(name), name


@pytest.mark.parametrize("path", ["kineto/resnet50_2021_stack_memory.json.gz"])
def test_the_gradient_that_a_name_tells_is_that_of_the_operator_that_launched_it(path):
    operators = {
        event["args"]["External id"]: event["name"]
        for event in events(path)
        if event.get("cat") == "Operator"
    }
    gradients = {
        "aten::cudnn_convolution": {None},
        "aten::cudnn_convolution_backward_input": {None, "dgrad"},
        "aten::cudnn_convolution_backward_weight": {"wgrad"},
    }
    result: dict[str, set[str | None]] = {operator: set() for operator in gradients}
    for event in events(path):
        if event.get("cat") == "Kernel":
            operator = operators.get(event["args"]["external id"])
            info = classify(event["name"])
            if operator in result and info.kind == "convolution":
                result[operator].add(info.layout)
    assert result == gradients

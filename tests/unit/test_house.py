"""Who may import whom, and what may stand where: the rules of docs/architecture.md."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "fastprof"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Rooms from the bottom up; a room may import itself and those below it, and compiled modules.
ROOMS = [
    {"about", "errors", "call", "columns", "names", "signals", "whole"},
    {"check", "memory"},
    {"trace", "markers", "ops", "annotate"},
    {"sources", "attribute", "integrations"},
    {"calls", "activities"},
    {"contents", "costs", "coverage"},
    {"profile", "report"},
    {"assemble", "fromdict", "info"},
    {"load"},
    {"ranks"},
    {"cli"},
    {"parse", "prof", "__main__"},
]
# Within a floor these pairs are allowed; report lends to_arrow to a Profile.
SAME_FLOOR = {("profile", "report")}

# What runs within a training program, and what only that may import.
IN_TRAINING = {"annotate", "integrations"}
OF_TRAINING = {"torch", "nvtx", "lightning", "pytorch_lightning"}


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "fastprof":
            found |= {f"fastprof.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def own_room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_import_only_from_the_rooms_below(path: Path) -> None:
    room = own_room(path)
    if room == "__init__":
        return
    floors = {name: floor for floor, names in enumerate(ROOMS) for name in names}
    for module in imports_of(path):
        if not module.startswith("fastprof."):
            continue
        other = room_of(module)
        if other.startswith("_") or other == room:
            continue
        allowed = floors[other] < floors[room] or (room, other) in SAME_FLOOR
        assert allowed, f"{room} imports {other}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_annotate_and_integrations_import_what_training_needs(path: Path) -> None:
    room = own_room(path)
    if room in IN_TRAINING:
        return
    imports = imports_of(path)
    assert not {name.split(".")[0] for name in imports} & OF_TRAINING
    if room != "__init__":  # which names their contents, and imports them when they are asked for
        assert not {room_of(name) for name in imports if name.startswith("fastprof.")} & IN_TRAINING


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_library_neither_evaluates_nor_asserts_nor_prints(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.Assert), node.lineno
        assert not (isinstance(node, ast.ExceptHandler) and node.type is None), node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            forbidden = {"eval", "exec"} | (set() if own_room(path) == "cli" else {"print"})
            assert node.func.id not in forbidden, node.lineno


def test_the_c_core_knows_nothing_of_python() -> None:
    for path in sorted((ROOT / "csrc").glob("*.[ch]")):
        text = path.read_text()
        assert "Python.h" not in text, path.name
        assert "printf(" not in text, path.name


def test_files_stay_small() -> None:
    sources = [*MODULES, *(ROOT / "csrc").glob("*.[ch]"), *(ROOT / "src").rglob("*.pyx")]
    lengths = {path.name: len(path.read_text().splitlines()) for path in sources}
    assert {name: n for name, n in lengths.items() if n > 400} == {}

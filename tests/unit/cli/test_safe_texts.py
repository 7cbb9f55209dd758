"""No text of a trace, and no name of a file, controls a terminal or reorders or hides text."""

import io
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from bench.generate import generate

from fastprof.cli.output import _Terminal
from fastprof.model.heading import printable
from fastprof.model.table_text import markdown_text
from fastprof.model.terminal import Colours
from fastprof.page.table import shown
from support import every_command
from support.every_command import Done, run_here
from support.kineto_files import KinetoFile
from support.memory_snapshots import Snapshot, frames

pytestmark = pytest.mark.usefixtures("forked_workers")

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
NAMES = (
    "\x1b]0;PWNED\x07\x1b[2J\x1b[31mred",
    "\x9b31mC1\x9d0;x\x9c",
    "\u202e\u2066RTL\u2069\u200f\u200e\u061c",
    "\u2028\u2029\ufeff\u200b",
    "a\x00b\x7f\rc\x85",
    "\ud800\udfff\ud800",
    "| a | <b>x</b> [l](javascript:alert(1)) `c` \\| &lt;",
)
# What other programs read: names are exact there, but not on a terminal.
DATA = ("--csv", "--json", "--format", "--to")
COMMANDS = [name for name in every_command.commands() if name not in ("batch", "report", "nsys")]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every text of it is hostile, and the name of its file."""
    file = KinetoFile(
        deviceProperties=[{"id": 0, "name": NAMES[0]}],
        trace_name=NAMES[1],
        distributedInfo={"rank": 0, "world_size": 1, "backend": NAMES[0]},
    )
    file.named("process_name", NAMES[1]).named("thread_name", NAMES[2], tid=1)
    time = 0
    for step in range(3):
        begin = time
        for i, name in enumerate(NAMES):
            other, corr = NAMES[(i + 1) % len(NAMES)], 100 * step + i + 1
            file.python(time, time + 90_000, f"{name}.py({i}): {other}")
            file.python(time, time + 89_000, f"nn.Module: {name}_0")
            file.annotation(time, time + 85_000, f"range {name}")
            file.op(time, time + 80_000, f"aten::{name}", dims=[[8, 8]], types=[name],
                    values=[other], external=corr)  # fmt: skip
            file.launch(time + 1000, time + 5000, corr, name=f"cuda{name}")
            file.kernel(time + 9000, time + 40_000, corr, name, external=corr,
                        **{"Collective name": name, "dtype": other})  # fmt: skip
            file.memory(time + 500, 512, **{"Device Type": 1, "Device Id": 0, "Addr": i})
            time += 100_000
        file.annotation(begin, time, f"ProfilerStep#{step}")
    return file.write(tmp_path_factory.mktemp("hostile") / "net\x1b[2J\u202e.json")


# The styles that fastprof itself prints on a terminal.
STYLES = re.compile("\x1b\\[(?:0|1|2|36|1;33)m")


def unsafe(done: Done, *, out: bool = True) -> set[str]:
    return set(UNSAFE.findall(STYLES.sub("", (done.out if out else "") + done.err)))


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_unsafe_is_printed(command: str, trace: Path, tmp_path: Path) -> None:
    for words in every_command.invocations(command, trace, tmp_path):
        on_terminal = run_here(*words, on_terminal=True)
        assert on_terminal.code in (0, 1, 2), on_terminal
        assert unsafe(on_terminal) == set(), words
        done = run_here(*words)
        assert unsafe(done, out=not any(each in words for each in DATA)) == set(), words


def test_names_in_data_are_exact(trace: Path) -> None:
    assert NAMES[0] in run_here("prof", trace, "--csv").out


def test_ranks_pages_and_comparisons_are_safe(trace: Path, tmp_path: Path) -> None:
    done = run_here("batch", trace, "-j", "1")
    assert (done.code, unsafe(done)) == (0, set())
    page = tmp_path / "x.html"
    assert unsafe(run_here("report", trace, "-o", page)) == set()
    assert UNSAFE.findall(page.read_text("utf-8", "surrogatepass")) == []
    assert unsafe(run_here("diff", trace, trace, "--html", page)) == set()
    assert UNSAFE.findall(page.read_text("utf-8", "surrogatepass")) == []


def test_a_memory_snapshot_is_safe(tmp_path: Path) -> None:
    snapshot = Snapshot()
    for i, name in enumerate(NAMES[:4]):
        snapshot.allocate(1000 + i, frames(f"{name}.py:7 {name}"))
    path = snapshot.write(tmp_path / "s.pickle")
    for words in (["memory", path], ["memory", path, "--csv"], ["overview", path]):
        assert unsafe(run_here(*words, on_terminal=True)) == set()


@pytest.mark.parametrize("name", NAMES[:3])
def test_messages_quote_safely(name: str, trace: Path, tmp_path: Path) -> None:
    on_trace = (
        *(["--by", name], [name], [f"--{name}"], ["--steps", name], ["--where", f"op={name}"]),
        *(["--sort", name], ["-o", tmp_path / name.replace("/", "") / "x"]),
    )
    for words in (
        *(["summary", trace, *each] for each in on_trace),
        *(
            [f"no{name}"],
            [f"{name}.sqlite"],
            ["prof", tmp_path / name / "x"],
            ["diff", trace, name],
        ),
        *(["prof", trace, "-c", name], ["export", trace, "--to", name]),
        *(["lines", trace, "--mine", name], ["run", "--list", "-o", name]),
    ):
        if "\0" not in name:
            assert unsafe(run_here(*words)) == set(), words


def test_a_terminal_gets_whole_characters_and_lines() -> None:
    memory = io.BytesIO()
    terminal = _Terminal(memory)  # type: ignore[arg-type]  # a file in memory
    for byte in "é→ 𝕏\n\ta\x1b[2Jb\r\n".encode():
        assert terminal.write(bytes([byte])) == 1
    assert memory.getvalue().decode() == "é→ 𝕏\n\ta [2Jb \n"


def test_a_terminal_gets_the_styles_of_ours_and_no_others() -> None:
    colours = Colours(are_on=True)
    ours = "".join([colours.strong("a"), colours.weak("b"), colours.mark("c"), colours.bar("█")])
    for size in (1, 3, 100):
        memory = io.BytesIO()
        terminal = _Terminal(memory)  # type: ignore[arg-type]  # a file in memory
        data = f"{ours} \x1b[8mhidden \x1b[2J\x1b]0;title\x07\n".encode()
        for at in range(0, len(data), size):
            terminal.write(data[at : at + size])
        assert memory.getvalue().decode() == f"{ours}  [8mhidden  [2J ]0;title \n"


def test_a_command_colours_a_real_terminal(tmp_path: Path) -> None:
    generate(tmp_path / "x.sqlite", 1000, 1)
    ours, theirs = os.openpty()
    environment = {name: text for name, text in os.environ.items() if name != "NO_COLOR"}
    command = [sys.executable, "-m", "fastprof", "summary", str(tmp_path / "x.sqlite")]
    with subprocess.Popen(
        [*command, "--limit", "3"], stdout=theirs, env=environment | {"TERM": "xterm"}
    ) as running:
        os.close(theirs)
        parts = []
        with suppress(OSError):  # the end, on Linux
            while part := os.read(ours, 4096):
                parts.append(part)
    os.close(ours)
    text = b"".join(parts).decode()
    assert running.returncode == 0 and "\x1b[1mtotal\x1b[0m" in text
    assert "[1m" not in text.replace("\x1b[1m", "")


def test_one_place_makes_texts_printable() -> None:
    assert printable("".join(NAMES)).isprintable()
    assert printable("日本語 é") == "日本語 é"
    assert shown("\x1b<b>") == " &lt;b&gt;"
    package = Path(every_command.main.__code__.co_filename).parents[1]
    users = [path.name for path in package.rglob("*.py") if "isprintable(" in path.read_text()]
    assert users == ["heading.py"]


def test_markdown_shows_names_as_they_are() -> None:
    assert markdown_text(NAMES[-1]) == (
        "\\| a \\| \\<b>x\\</b> \\[l](javascript:alert(1)) \\`c\\` \\\\\\| \\&lt;"
    )
    assert markdown_text("aten::mm_[3] a & b") == "aten::mm_\\[3] a & b"

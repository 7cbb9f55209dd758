"""The smallest captures there are: every command ends with an answer or one clear line.

`python -m fuzz.of_smallest` runs every command in every format on all of them.
"""

from pathlib import Path

import pytest

from support import every_command
from support.every_command import problem, run_here
from support.hypothesis_profiles import IS_FULL
from support.smallest_captures import captures

pytestmark = pytest.mark.usefixtures("forked_workers")
# Without starting processes and without all reports at once, which take longest.
QUICK = [name for name in every_command.commands() if name not in ("batch", "report", "export")]
SHARE = 4 if IS_FULL else 12  # a command runs on one in SHARE captures
REPORTED = (
    *("nsys: a kernel of no length", "nsys: a GPU without length", "nsys: empty StringIds"),
    *("nvprof: only copies", "kineto: a GPU without length", "list: only operators"),
    *("kineto: no threads", "kineto: nulls", "nsys: NULL in CUPTI_ACTIVITY_KIND_KERNEL"),
    *("nsys: only ranges", "kineto: only empty steps", "nsys: no CUPTI_ACTIVITY_KIND_RUNTIME"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("smallest")


@pytest.fixture(scope="module")
def made(folder: Path) -> dict[str, Path]:
    """A file of each of the smallest captures."""
    (folder / "models").mkdir()
    result = {}
    for number, (name, make) in enumerate(captures(folder / "models").items()):
        (folder / str(number)).mkdir()
        result[name] = make(folder / str(number))
    return result


@pytest.mark.parametrize("command", QUICK)
def test_a_command_on_the_smallest_captures(command, made, tmp_path):
    """Every capture of some, each in another format."""
    place = QUICK.index(command)
    for number, file in enumerate([*made.values()][place % SHARE :: SHARE]):
        if words := [*every_command.invocations(command, file, tmp_path)]:
            chosen = words[number % len(words)]
            assert problem(run_here(*chosen)) == "", chosen


@pytest.mark.parametrize("name", REPORTED)
def test_a_page_of_the_smallest_captures(name, made, tmp_path):
    for command in ("report", "overview", "advise"):
        for words in [*every_command.invocations(command, made[name], tmp_path)][:1]:
            assert problem(run_here(*words)) == ""


@pytest.mark.parametrize("name", REPORTED[:6])
def test_exports_of_the_smallest_captures(name, made, tmp_path):
    for words in every_command.invocations("export", made[name], tmp_path):
        assert problem(run_here(*words)) == "", words


def test_calls_without_names_have_one(made):
    import fastprof

    profile = fastprof.open(made["nsys: empty StringIds"])
    assert profile.api.name.values == ["(no name)"]
    assert (profile.api.name.ids == 0).all()

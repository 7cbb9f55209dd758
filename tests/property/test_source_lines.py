"""Lines and layers that a report shows for any stack and any nested layers."""

from hypothesis import given
from hypothesis import strategies as st

from fastprof.model.markers import SourceLines, each_part_once
from fastprof.model.markers.frames import Owner, owner_of

FILES = st.sampled_from(
    ["train.py", "src/a b.py", "torch/_ops.py", "threading.py", "timm/x.py", "<string>", "", "<"]
) | st.text(max_size=12)
FRAMES = st.builds(
    lambda file, line, name: f"{file}:{line}{name}",
    FILES,
    st.integers(0, 999),
    st.sampled_from(["", " f", " <lambda>"]),
) | st.text(max_size=12)
STACKS = st.lists(FRAMES, max_size=8)
GLOBS = st.lists(st.sampled_from(["*", "src/*", "torch", "[", "train.py", "t?mm"]), max_size=2)


@given(STACKS, GLOBS)
def test_lines_are_frames_and_what_follows_them_is_another_s(frames, mine):
    lines = SourceLines(mine)
    trace = lines.trace(frames)
    assert list(trace) == frames[: len(trace)]
    assert lines.trace(trace) == trace
    assert lines.library_line(frames) == (trace[-1] if trace else None)
    line = lines.line(frames)
    assert lines.line(trace) == line
    assert line is None or line in trace
    assert lines.line([*frames, "torch/_ops.py:1 __call__"]) == line or mine


@given(FILES)
def test_any_text_belongs_to_somebody_or_to_its_caller(file):
    assert owner_of(file) in {None, *Owner}
    assert (owner_of(file) is None) <= file.startswith("<")


NAMES = st.lists(st.text(alphabet="ab.", max_size=6), max_size=6)


@given(NAMES)
def test_a_part_is_the_end_of_its_name_and_what_is_missing_is_a_layer_around_it(names):
    parts = each_part_once(names)
    assert len(parts) == len(names)
    for i, (name, part) in enumerate(zip(names, parts, strict=True)):
        assert name.endswith(part)
        cut = name[: len(name) - len(part)]
        longer = [n for n in names[:i] if n and name.startswith(n + ".") and len(n) < len(name) - 1]
        assert cut == (max(longer, key=len) + "." if longer else "")

"""Fixtures of the drivers and of the sanitized modules."""

import pytest

from csrc import sanitized, test_sanitized


@pytest.fixture(scope="session")
def finds_leaks(tmp_path_factory):
    """Whether LeakSanitizer works: it cannot where a process may not trace itself."""
    if sanitized.why_not():
        pytest.skip(sanitized.why_not())
    folder = tmp_path_factory.mktemp("leak")
    (folder / "leak.c").write_text(test_sanitized.LEAK)
    test_sanitized.compile_to(folder / "leak", folder / "leak.c")
    done = test_sanitized.run(folder / "leak", ASAN_OPTIONS="detect_leaks=1")
    return "detected memory leaks" in done.stderr

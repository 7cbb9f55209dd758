"""Fixtures of the drivers and of the sanitized modules."""

import pytest
import test_sanitized


@pytest.fixture(scope="session")
def finds_leaks(tmp_path_factory):
    """Whether LeakSanitizer works; it requires that a process may trace itself."""
    if test_sanitized.why_not():
        pytest.skip(test_sanitized.why_not())
    folder = tmp_path_factory.mktemp("leak")
    (folder / "leak.c").write_text(test_sanitized.LEAK)
    test_sanitized.compile_to(folder / "leak", [folder / "leak.c"])
    return (
        "detected memory leaks"
        in test_sanitized.run(folder / "leak", ASAN_OPTIONS="detect_leaks=1").stderr
    )

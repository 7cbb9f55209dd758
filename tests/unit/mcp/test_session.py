"""Open profiles: kept, bounded, read again when the file changes."""

import os
import shutil

import pytest

from fastprof.errors import BadInputError
from fastprof.mcp.session import Job, StoppedError, resident
from unit.mcp.clients import profiles_of


@pytest.fixture
def folder(tmp_path, generated):
    """Three captures."""
    for name in "abc":
        shutil.copy(generated(100), tmp_path / f"{name}.sqlite")
    return tmp_path


def opened(profiles, *names):
    """The profiles of files, after the call that used them."""
    with profiles.using([f"{name}.sqlite" for name in names], Job()) as result:
        return result


def names_of(profiles):
    return [os.path.basename(path)[0] for path in profiles.open_files()]


def test_a_profile_stays_open(folder):
    profiles = profiles_of(folder)
    assert opened(profiles, "a")[0] is opened(profiles, "a")[0]
    assert opened(profiles, "a", "b", "a")[0] is opened(profiles, "a")[0]


def test_the_least_recently_used_is_closed_when_memory_is_short(folder):
    used = [0.0]
    profiles = profiles_of(folder, 100.0, lambda: used[0])
    opened(profiles, "a")
    opened(profiles, "b")
    opened(profiles, "a")
    assert names_of(profiles) == ["b", "a"]
    used[0] = 200.0
    opened(profiles, "c")
    assert names_of(profiles) == ["c"]


def test_a_profile_in_use_is_not_closed(folder):
    profiles = profiles_of(folder, 0.0, lambda: 1.0)
    with profiles.using(["a.sqlite"], Job()) as (first,):
        opened(profiles, "b")
        assert names_of(profiles) == ["a", "b"]
        assert len(first.summary()) > 0


def test_a_changed_file_is_read_again(folder, generated):
    profiles = profiles_of(folder)
    (before,) = opened(profiles, "a")
    shutil.copy(generated(1000), folder / "a.sqlite")
    (after,) = opened(profiles, "a")
    assert len(after) > len(before)
    os.unlink(folder / "a.sqlite")
    with pytest.raises(BadInputError, match="no such file"):
        opened(profiles, "a")


def test_parts_are_kept_with_their_profile(folder):
    profiles = profiles_of(folder)
    with profiles.using(["a.sqlite"], Job()) as (profile,):
        assert profiles.part(profile, None) is profile
        assert profiles.part(profile, ":") is profiles.part(profile, ":")


def test_the_memory_of_this_process_is_known():
    assert resident() > 1e6


def test_a_stopped_call_does_not_wait_for_another_one(folder):
    profiles, work = profiles_of(folder), Job()
    work.stop()
    with (
        profiles.using(["a.sqlite"], Job()),
        pytest.raises(StoppedError),
        profiles.using(["a.sqlite"], work),
    ):
        pass

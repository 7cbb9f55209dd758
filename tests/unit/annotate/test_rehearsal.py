"""The step before the first recorded one is rehearsed: it computes the texts of its ranges."""

import collections
import os

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
pytest.importorskip("nvtx", reason="nvtx is not installed: pip install nvtx")

import fastprof
from fastprof.annotate import text


@pytest.fixture
def described(monkeypatch):
    """Counts the texts of calls and of stacks that are computed."""
    counts = collections.Counter()
    for name in ("_named", "_lines"):
        original = getattr(text, name)

        def counted(*values, name=name, original=original):
            counts[name] += 1
            return original(*values)

        monkeypatch.setattr(text, name, counted)
    with fastprof.init():
        yield counts


def work():
    x = torch.ones(3, 4)
    return torch.mm(x, x.t()), torch.nn.functional.relu(x), torch._foreach_add([x] * 3, 1.0)


def by_iteration(counts, capture, n):
    """The texts that each iteration computes."""
    result = []
    with capture:
        for _ in range(n):
            counts.clear()
            work()
            result.append((counts["_named"] > 0, counts["_lines"] > 0))
            capture.step()
    return result


def capture_to(folder, **numbers):
    return fastprof.capture(backend="torch", path=folder / "net.json", **numbers)


def test_texts_are_computed_before_the_first_recorded_iteration(described, tmp_path):
    result = by_iteration(described, capture_to(tmp_path, wait=1, warmup=2, active=2), 6)
    silent = (False, False)
    assert result == [silent, (True, True), silent, silent, silent, silent]
    profile = fastprof.open(tmp_path / "net.json")
    assert profile.about.steps.number.tolist() == [3, 4]
    texts = profile.ranges.text.values
    assert sum("'op': 'relu'" in each for each in texts) == 2
    assert not [each for each in texts if each.startswith("ProfilerStep#2")]


@pytest.mark.filterwarnings("ignore:fastprof.capture")
def test_nothing_is_rehearsed_after_a_loop_that_ends_in_warmup(described, tmp_path):
    by_iteration(described, capture_to(tmp_path, wait=0, warmup=5), 2)
    described.clear()
    torch.ones(7).exp()
    assert not described


def test_forks_rehearse_nothing(described, tmp_path):
    with capture_to(tmp_path, wait=0, warmup=1) as capture:
        torch.ones(7).exp()
        assert described
        described.clear()
        child = os.fork()
        if not child:
            torch.ones(7).sin()
            os._exit(len(described))
        assert os.waitpid(child, 0)[1] == 0
        for _ in range(2):
            capture.step()

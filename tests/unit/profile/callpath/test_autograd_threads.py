"""Work of autograd's thread in exports with own ranges only, where nothing but behaviour tells it.

Exports of a training loop: each step copies a batch, runs forward, backward on a thread of the
engine, and the optimizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from support.exports import PID, Export, global_tid

MAIN, ENGINE, LOADER = 1, 2, 3
FORWARD = ("sgemm_128x64_tn", "fmha_cutlassF_f32_aligned_64x128_rf_sm80", "gelu_kernel")
BACKWARD = ("sgemm_128x64_nt", "fmha_cutlassB_f32_aligned_64x64_k64_sm80", "gelu_kernel", "add")
PLAIN = ("sgemm_128x64_nt", "elementwise_kernel", "reduce_kernel", "add")  # of any pass
STEP = 10_000


class Loop(Export):
    """A training loop of some steps.

    Parameters
    ----------
    outer, backward : whether a range `step N` is around the step, and `backward` around the pass
    kernels : of the backward pass, three times each
    """

    n = 0

    def work(self, at: int, tid: int, name: str, device: int = 0, stream: int = 7) -> None:
        self.n += 1
        self.launch(at, at + 2, self.n, tid)
        self.kernel(at + 5, at + 25, self.n, name=name, device=device, stream=stream)

    def upload(self, at: int, tid: int, stream: int = 7) -> None:
        self.n += 1
        self.launch(at, at + 2, self.n, tid, "cudaMemcpyAsync_v3020")
        self.copy(at + 5, at + 25, self.n, 1, 4096, stream=stream)

    def pass_(self, at: int, tid: int, names: Sequence[str], **others: Any) -> None:
        """Each kernel three times, one launch every 30 ns."""
        for i, name in enumerate([*names] * 3):
            self.work(at + 30 * i, tid, name, **others)

    def loop(
        self,
        steps: int,
        outer: bool = False,
        backward: bool = False,
        kernels: Sequence[str] = BACKWARD,
    ) -> Loop:
        for number in range(steps):
            at = STEP * number
            if outer:
                self.push_pop(at, at + 9000, f"step {number}", MAIN)
            self.push_pop(at + 10, at + 990, "data copy in", MAIN)
            self.upload(at + 100, MAIN)
            self.push_pop(at + 1000, at + 2000, "forward", MAIN)
            self.pass_(at + 1010, MAIN, FORWARD)
            self.work(at + 1900, MAIN, "nll_loss_forward")
            if backward:
                self.push_pop(at + 2100, at + 4900, "backward", MAIN)
            self.pass_(at + 3000, ENGINE, kernels)
            self.push_pop(at + 5000, at + 6000, "optimizer", MAIN)
            self.pass_(at + 5010, MAIN, ("multi_tensor_apply_kernel",))
        return self

    def named(self, **names: str) -> Loop:
        """Name the threads t1, t2, ..."""
        for thread, text in names.items():
            tid = global_tid(PID, int(thread[1:]))
            self.row("ThreadNames", nameId=self.string(text), priority=0, globalTid=tid)
        return self


def of_thread(profile: Any, tid: int, *names: str) -> set[Any]:
    """The distinct values of columns in the rows of a thread."""
    return {tuple(row[name] for name in names) for row in profile.rows() if row["tid"] == tid}


NAMES = [{}, {"t1": "python", "t2": "python"}, {"t1": "train.py", "t2": "python"},
         {"t1": "python", "t2": "pt_autograd_0"}]  # fmt: skip


@pytest.mark.parametrize("names", NAMES)
def test_between_ranges_it_is_backward_work_of_its_step(opened, names):
    profile = opened(Loop().loop(4).named(**names))
    assert of_thread(profile, ENGINE, "dir", "phase", "launch_ranges") == {
        ("bprop", "backward", ())
    }
    assert of_thread(profile, MAIN, "dir") == {(None,)}
    step = profile.kernels["step"][profile.kernels["tid"] == ENGINE]
    assert step.tolist() == [number for number in (1, 2, 3, 4) for _ in range(12)]


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("inner", [(), ("backward",)])
def test_it_belongs_to_the_ranges_that_the_caller_has_open(opened, names, inner):
    profile = opened(Loop().loop(3, outer=True, backward=bool(inner)).named(**names))
    result = of_thread(profile, ENGINE, "dir", "phase", "launch_ranges", "ranges", "step")
    chains = [(f"step {number}", *inner) for number in range(3)]
    assert result == {
        ("bprop", "backward", chain, chain, number) for number, chain in enumerate(chains)
    }
    assert profile.find_steps().source == "range step *"
    rows = {row["range"]: row for row in profile.ranges_table().rows()}
    assert rows[":".join(["step *", *inner])]["gpu_ns"] >= 3 * 12 * 20
    assert "(no range)" not in rows


def test_one_pass_with_backward_kernels_is_enough(opened):
    profile = opened(Loop().loop(1, backward=True))
    assert of_thread(profile, ENGINE, "dir", "launch_ranges") == {("bprop", ("backward",))}


def test_a_thread_that_others_wait_for_is_not_known_to_run_backward(opened):
    profile = opened(Loop().loop(3, backward=True, kernels=PLAIN))
    assert of_thread(profile, ENGINE, "dir", "phase", "launch_ranges") == {
        (None, "other", ("backward",))
    }


def test_one_pass_without_backward_kernels_proves_nothing(opened):
    profile = opened(Loop().loop(1, backward=True, kernels=PLAIN))
    assert of_thread(profile, ENGINE, "dir", "launch_ranges") == {(None, ())}


@pytest.mark.parametrize("name", ["worker", "pt_data_pin", "cuda-EvtHandlr"])
def test_a_thread_with_a_name_of_its_own_keeps_to_itself(opened, name):
    profile = opened(Loop().loop(3, backward=True).named(t1="python", t2=name))
    assert of_thread(profile, ENGINE, "dir", "launch_ranges") == {(None, ())}


def test_a_loader_that_copies_while_the_caller_launches_has_no_ranges(opened):
    export = Loop().loop(4, outer=True, backward=True)
    for number in range(4):
        for i in range(20):
            export.upload(STEP * number + 1015 + 45 * i, LOADER, stream=9)
        for i in range(10):  # while the caller waits
            export.upload(STEP * number + 7000 + 10 * i, LOADER)
    profile = opened(export)
    assert of_thread(profile, LOADER, "dir", "launch_ranges") == {(None, ())}
    assert of_thread(profile, ENGINE, "dir") == {("bprop",)}


def test_kernels_of_a_thread_beside_the_caller_have_no_ranges(opened):
    export = Loop()
    for number in range(4):
        at = STEP * number
        export.push_pop(at, at + 5000, f"step {number}", MAIN)
        export.pass_(at, MAIN, PLAIN * 10)
        export.pass_(at + 10, LOADER, PLAIN * 10)
    assert of_thread(opened(export), LOADER, "dir", "launch_ranges") == {(None, ())}


def test_kernels_on_a_stream_of_their_own_have_no_ranges(opened):
    export = Loop().loop(4, outer=True)
    for number in range(4):
        export.pass_(STEP * number + 7000, LOADER, PLAIN, stream=9)
    assert of_thread(opened(export), LOADER, "dir", "launch_ranges") == {(None, ())}


def test_a_range_of_its_own_stands_inside_the_callers(opened):
    export = Loop().loop(3, outer=True, backward=True)
    for number in range(3):
        export.push_pop(STEP * number + 3000, STEP * number + 3028, "cublasCreate", ENGINE)
    rows = [row for row in opened(export).rows() if row["tid"] == ENGINE]
    first = ("step 1", "backward", "cublasCreate")
    assert [row["launch_ranges"] for row in rows[12:14]] == [first, first[:2]]
    assert {row["dir"] for row in rows} == {"bprop"}


# -- several callers ------------------------------------------------------------------------------


def two_ranks(second_gpu: int, shift: int) -> Loop:
    """Threads 1 and 3 train in one process, 2 and 4 run their backward passes."""
    export = Loop()
    for number in range(3):
        for i, tid in enumerate((1, 3)):
            at, device = STEP * number + shift * i, i * second_gpu
            export.push_pop(at, at + 2900, f"rank {i}", tid)
            export.pass_(at + 10, tid, FORWARD, device=device)
            export.pass_(at + 1000, tid + 1, BACKWARD, device=device)
    return export


@pytest.mark.parametrize("names", [{}, {"t2": "pt_autograd_0", "t4": "pt_autograd_1"}])
def test_the_caller_uses_the_gpu_of_the_engines_thread(opened, names):
    profile = opened(two_ranks(second_gpu=1, shift=7).named(**names))
    assert of_thread(profile, 2, "launch_ranges") == {(("rank 0",),)}
    assert of_thread(profile, 4, "launch_ranges") == {(("rank 1",),)}


def test_of_callers_on_one_gpu_the_one_that_is_silent_waits(opened):
    export = two_ranks(second_gpu=0, shift=0).named(t2="pt_autograd_0", t4="pt_autograd_0")
    assert of_thread(opened(export), 2, "dir", "launch_ranges") == {("bprop", ())}  # both are
    export = Loop().named(t2="pt_autograd_0")
    for i, tid in enumerate((1, 3)):
        export.push_pop(0, 6000, f"rank {i}", tid)
    export.pass_(10, 1, FORWARD)
    export.pass_(1000, 2, BACKWARD)
    for at in range(0, 6000, 600):
        export.work(at, 3, "gelu_kernel")
    assert of_thread(opened(export), 2, "launch_ranges") == {(("rank 0",),)}

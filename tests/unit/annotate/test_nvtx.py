"""With a real NVTX tool attached, results are unchanged and every range ends."""

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("nvtx")

from support.hypothesis_profiles import some

HERE = Path(__file__).parent
FILES = some(["kinds", "exceptions", "overrides"], 3)


def test_the_tests_of_this_folder_pass_with_a_tool_and_leave_no_range_open(record_nvtx):
    files = [str(HERE / f"test_{name}.py") for name in FILES]
    program = f"""
        import sys
        import pytest
        sys.exit(pytest.main({files} + ["-q", "-p", "no:cacheprovider", "-k", "not broken"]))
    """
    recording = record_nvtx(program, with_torch=True)
    assert recording.open_ranges == [] and recording.stray == 0
    assert len(recording.ranges) > 5000


def test_ranges_say_stack_and_arguments_and_nest_as_the_calls_do(record_nvtx):
    recording = record_nvtx(
        """
        import torch, fastprof
        fastprof.init()
        x = torch.ones(2, 3)
        with fastprof.layer("first"):
            y = torch.nn.functional.relu(x)
        try:
            torch.mm(x, x)
        except RuntimeError:
            print("refused")
    """,
        with_torch=True,
    )
    assert recording.stdout == "refused\n"
    assert recording.open_ranges == [] and recording.stray == 0
    (layer,) = [tree for tree in recording.trees() if tree[0] == "layer:first"]
    ((stack, inner),) = layer[1]
    assert stack.startswith("{'traceMarker': [") and "program.py:6" in stack
    relu, of_torch = inner[0][0], inner[0][1]
    assert relu.startswith("{'mod': 'torch.nn.functional', 'op': 'relu', 'args': [")
    assert "'shape': (2, 3), 'dtype': 'float32'" in relu
    assert "'mod': 'torch', 'op': 'relu'" in str(of_torch)


def test_children_that_are_forked_have_ranges_of_their_own(record_nvtx):
    recording = record_nvtx(
        """
        import os, torch, fastprof
        fastprof.init()
        torch.ones(1)
        child = os.fork()
        total = torch.ones(3).sum().item()
        if child == 0:
            os._exit(int(total))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    """,
        with_torch=True,
    )
    processes = {process for process, _ in recording.forest}
    assert len(processes) == 2 and recording.open_ranges == [] and recording.stray == 0

"""Ownership of source files, and the lines of a stack that a report shows."""

import pytest

from fastprof.model.markers import SourceLines
from fastprof.model.markers.frames import Owner, owner_of

SITE = "/home/me/venv/lib/python3.11/site-packages"
TORCH = [
    "torch/utils/_device.py",
    "torch/_dynamo/eval_frame.py",
    "torch/nn/parallel/distributed.py",
    f"{SITE}/torch/utils/_contextlib.py",
    "/usr/local/lib/python3.10/dist-packages/torch/_ops.py",
    "/build/pytorch/torch/nn/functional.py",
    "site-packages/torch/_tensor.py",
    "functorch/_src/vmap.py",
    "triton/runtime/jit.py",
    "/sgl-workspace/triton-custom/python/triton/backends/amd/driver.py",
    f"{SITE}/triton/compiler/compiler.py",
    "/tmp/torchinductor_root/ov/cov463qhi2m2kw6ldmzzijfv5t3cjjklfci3qly3nsw6upcskct3.py",
    "/scratch/cache/ov/cov463qhi2m2kw6ldmzzijfv5t3cjjklfci3qly3nsw6upcskct3.py",
    "/home/me/.triton/cache/ab12/launcher.py",
    "<eval_with_key>.12",
    "<eval_with_key>.7 from /home/me/net.py",
    "<frozen importlib._bootstrap>",
    "threading.py",
    "multiprocessing/spawn.py",
    "/usr/lib/python3.10/contextlib.py",
    "/home/me/conda/lib/python3.7/threading.py",
    "C:\\Python311\\Lib\\threading.py",
]
LIBRARY = [
    "transformers/models/t5/modeling_t5.py",
    "torchvision/models/resnet.py",
    f"{SITE}/my_company/layers.py",
    f"{SITE}/torchvision/models/resnet.py",
    "/usr/lib/python3/dist-packages/numpy/core/numeric.py",
    "lib/python3.10/site-packages/lightning/pytorch/trainer/trainer.py",
    "C:\\venv\\Lib\\site-packages\\timm\\layers\\mlp.py",
    "numpy/core/numeric.py",
    "typing_extensions.py",
]
MINE = [
    "train.py",
    "profile.py",
    "src/queue.py",
    "moca/library/profiling/profile.py",
    "models/transformers/block.py",
    "/home/me/net/train.py",
    "/home/me/torch/train.py",
    "/app/xDiT/xfuser/runner.py",
    "/home/me/triton_kernels/matmul.py",
    "/home/me/kernels/triton/matmul.py",
    "<stdin>",
    "<ipython-input-7-1a2b>",
    "<command-1234>",
    "/tmp/ipykernel_812/3313.py",
    "C:\\work\\train.py",
    "torch.py",
    "ov/cov463.py",
]


@pytest.mark.parametrize(
    ("file", "owner"),
    [(file, Owner.TORCH) for file in TORCH]
    + [(file, Owner.LIBRARY) for file in LIBRARY]
    + [(file, Owner.MINE) for file in MINE]
    + [("<string>", None), ("<__array_function__ internals>", None)],
)
def test_the_path_says_whose_a_file_is(file, owner):
    assert owner_of(file) is owner


def shown(*frames, mine=()):
    lines = SourceLines(mine)
    return lines.trace(frames), lines.line(frames), lines.library_line(frames)


def test_frames_of_torch_go_from_the_end_and_stay_in_the_middle():
    frames = (
        "train.py:62 <module>", "torch/nn/parallel/distributed.py:1637 forward",
        "torchvision/models/resnet.py:89 forward", "torch/utils/_device.py:100 __torch_function__",
        "<eval_with_key>.3:4 forward", "threading.py:9 run",
    )  # fmt: skip
    assert shown(*frames) == (frames[:3], frames[0], frames[2])


def test_a_stack_of_torch_alone_shows_nothing():
    assert shown("torch/autograd/graph.py:823 run", "threading.py:9 run") == ((), None, None)
    assert shown() == ((), None, None)


def test_a_graph_that_torch_generated_is_no_line_of_the_file_it_came_from():
    frames = ("train.py:7 step", "<eval_with_key>.7 from /home/me/net.py:3 in wrapped:5 forward")
    assert shown(*frames) == (frames[:1], frames[0], frames[0])


def test_code_without_a_file_belongs_to_who_called_it():
    launcher = ("train.py:7 step", "triton/runtime/jit.py:4 run", "<string>:1 launcher")
    assert shown(*launcher) == (launcher[:1], launcher[0], launcher[0])
    program = ("<string>:3 <module>", "<string>:1 step", "torch/_ops.py:5 __call__")
    assert shown(*program) == (program[:2], program[1], program[1])
    made = ("timm/layers/mlp.py:3 forward", "<string>:2 __init__")
    assert shown(*made) == (made, None, made[1])


def test_lines_that_ran_are_read_as_definitions_are():
    frames = ("/a b/train.py:310", f"{SITE}/torch/nn/utils/clip_grad.py:32")
    assert shown(*frames) == (frames[:1], frames[0], frames[0])
    strange = ("no line at all", "C:\\x\\train.py:3 f:9")
    assert shown(*strange) == (strange, strange[1], strange[1])


@pytest.mark.parametrize(
    ("mine", "line"),
    [
        (["*resnet*"], 2),
        ("*resnet*", 2),
        (["torchvision"], 2),
        (["models/*"], 2),
        (["./models/"], 2),
        (["resnet.py", "train.py"], 2),
        (["train.py"], 0),
        (["rain.py"], None),
        (["net"], None),
        (["torch/nn/parallel"], 1),
    ],
)
def test_globs_say_which_files_are_the_users(mine, line):
    frames = (
        "/x/train.py:62", f"{SITE}/torch/nn/parallel/distributed.py:5",
        f"{SITE}/torchvision/models/resnet.py:89",
    )  # fmt: skip
    trace, result, library_line = shown(*frames, mine=mine)
    assert (trace, library_line) == (frames, frames[2])
    assert result == (None if line is None else frames[line])


def test_what_the_user_calls_theirs_is_not_cut_off():
    frames = ("train.py:62", "torch/utils/checkpoint.py:343", "torch/_ops.py:4")
    assert shown(*frames)[0] == frames[:1]
    assert shown(*frames, mine="torch/utils/*")[:2] == (frames[:2], frames[1])


@pytest.mark.parametrize("mine", ["", ["a.py", "./"]])
def test_an_empty_glob_is_an_error(mine):
    with pytest.raises(ValueError, match="expected globs of files or folders"):
        SourceLines(mine)

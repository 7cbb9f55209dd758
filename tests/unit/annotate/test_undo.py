"""init and uninit: once, nested, and every attribute restored."""

import pickle
import threading
from multiprocessing.reduction import ForkingPickler

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

import fastprof
from fastprof._core._hooks import Wrapped
from fastprof.annotate import table
from fastprof.annotate.wrap import patches
from support.annotation_modes import TOOL, listening


def owners():
    """Everything init may change: modules, classes, and function defaults."""
    modules = [torch, torch.nn.functional, torch.functional, torch.linalg, torch.fft, torch.special]
    modules += [torch._C._nn, torch._C._linalg, torch._C._fft, torch._C._special, torch.jit, pickle]
    modules += [torch.distributed, torch.distributed.distributed_c10d]
    kinds = [torch.Tensor, ForkingPickler, torch.utils.data.dataloader._BaseDataLoaderIter]
    kinds += [getattr(torch.nn, name) for name in table._RECURRENT]
    kinds += table.subclasses(torch.optim.Optimizer)
    result = {f"{owner.__module__}.{owner.__name__}": vars(owner) for owner in kinds}
    result |= {module.__name__: vars(module) for module in modules}
    for function in table.with_defaults():
        result[function.__qualname__] = {"defaults": function.__defaults__}
    return result


def state():
    return {
        (owner, name): value
        for owner, held in owners().items()
        for name, value in held.items()
        if name not in ("__doc__", "__dict__")
    }


def changed(before, after):
    same = before.keys() == after.keys()
    return same, [key for key in before if before[key] is not after.get(key)]


def test_uninit_puts_back_every_attribute():
    fastprof.uninit()
    before = state()
    fastprof.init()
    assert len(changed(before, state())[1]) > 1000
    fastprof.uninit()
    assert changed(before, state()) == (True, [])


def test_uninit_after_what_a_program_does_puts_back_what_is_ours():
    import torch._dynamo

    class Fresh(torch.optim.Optimizer):
        def step(self):
            self.param_groups[0]["params"][0].data.zero_()

    before, step = state(), Fresh.step
    with fastprof.init():
        model = torch.nn.LSTM(2, 2)
        optimizer = Fresh(model.parameters(), {})
        model(torch.ones(1, 2))[0].sum().backward()
        optimizer.step()
        [*torch.utils.data.DataLoader([1, 2])]
    same, left = changed(before, state())
    # torch wraps the step of a class when its first optimizer is made.
    assert same and left == [(f"{__name__}.Fresh", "step")]
    assert Fresh.step.__wrapped__ is step
    assert step in [cell.cell_contents for cell in Fresh.step.__closure__]
    assert not any(isinstance(cell.cell_contents, Wrapped) for cell in Fresh.step.__closure__)
    optimizer.step()


def test_a_second_init_changes_nothing_and_doubles_no_range():
    with fastprof.init():
        relu = torch.nn.functional.relu
        with fastprof.init():
            assert torch.nn.functional.relu is relu
        assert torch.nn.functional.relu is relu  # the inner block does not own the session
        with listening(TOOL) as heard:
            torch.ones(1)
        assert len(heard.texts()) == 2
    assert not isinstance(torch.nn.functional.relu, Wrapped)


def test_init_again_doubles_no_range_of_an_optimizer():
    parameter = torch.ones(1, requires_grad=True)
    counts = []
    for _ in range(3):
        with fastprof.init():
            optimizer = torch.optim.RMSprop([parameter])
            with listening(TOOL) as heard:
                optimizer.step()
            counts.append(sum("'op': 'step'" in text for text in heard.texts()))
    assert counts == [1, 1, 1]


def test_uninit_alone_and_twice_does_nothing():
    before = state()
    fastprof.uninit()
    fastprof.uninit()
    assert changed(before, state()) == (True, [])


def test_a_block_that_raises_puts_all_back():
    with pytest.raises(KeyError), fastprof.init():
        raise KeyError
    assert not isinstance(torch.add, Wrapped)


def test_what_others_put_over_ours_stays(monkeypatch):
    fastprof.init()
    below = torch.nn.functional.silu

    def theirs(x, inplace=False):
        return below(x, inplace) + 1

    torch.nn.functional.silu = theirs
    try:
        fastprof.uninit()
        assert torch.nn.functional.silu is theirs
        assert theirs(torch.zeros(1)).item() == 1
        fastprof.init()
        assert theirs(torch.zeros(1)).item() == 1
    finally:
        fastprof.uninit()
        torch.nn.functional.silu = below.__wrapped__


def test_functions_that_a_program_kept_work_after_uninit():
    with fastprof.init():
        relu, add, split = torch.nn.functional.relu, torch.Tensor.add, torch.ones(4).split
    assert relu(torch.tensor(-1.0)).item() == 0 and add(torch.ones(1), 1).item() == 2
    assert len(split(2)) == 2
    with listening(TOOL) as heard:
        relu(torch.ones(1))
    assert heard.texts() == []


def test_functions_set_aside_in_several_threads_come_back():
    with fastprof.init():
        inside, leave = threading.Barrier(3), threading.Event()

        def work():
            with patches.suspended():
                inside.wait(10)
                leave.wait(10)
                assert not isinstance(torch.add, Wrapped)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        with patches.suspended():
            inside.wait(10)
            assert not isinstance(torch.add, Wrapped)
        leave.set()
        for thread in threads:
            thread.join()
        assert isinstance(torch.add, Wrapped) and isinstance(torch.Tensor.add, Wrapped)


def test_uninit_while_functions_are_set_aside_is_final():
    fastprof.init()
    with patches.suspended():
        fastprof.uninit()
    assert not isinstance(torch.add, Wrapped)


def test_a_program_that_uses_what_is_not_annotated_is_unchanged(annotated):
    assert torch.ops.aten.add(torch.ones(1), 1).item() == 2
    assert torch._C._VariableFunctions.add(torch.ones(1), 1).item() == 2
    assert torch._VF.stft is not None and torch.set_grad_enabled is torch.autograd.set_grad_enabled

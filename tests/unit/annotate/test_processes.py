"""Threads, forks, spawned processes, data loaders and distributed processes."""

import json
import os
import subprocess
import textwrap
import threading
from functools import partial

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

from torch.utils.data import DataLoader, Dataset

import fastprof
from support import torch_server
from support.annotation_modes import PROFILER, TOOL, listening
from support.waiting import PATIENCE, in_threads
from unit.annotate.annotation_outcomes import described, outcomes


class Squares(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return torch.tensor(float(i)) ** 2, torch.nn.functional.relu(torch.randn(2))


def test_threads_have_ranges_of_their_own(heard):
    together, results = threading.Barrier(4), []

    def work(n):
        together.wait(10)
        for _ in range(50):
            x = torch.full((3,), float(n))
            results.append(torch.nn.functional.softplus(x).add(n).mul_(2)[0].item())

    in_threads(*(partial(work, n) for n in range(4)))
    assert len(results) == 200 and len(set(results)) == 4


def test_init_and_uninit_while_other_threads_call():
    stop, failures, calls = threading.Event(), [], []

    def work():
        x = torch.ones(2)
        while not stop.is_set():
            try:
                assert torch.add(x, 1).mul(2).sum().item() == 8
                assert torch.nn.functional.relu(x)[0] == 1
                calls.append(1)
            except Exception as error:
                failures.append(repr(error))

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(10):
        with fastprof.init(), listening(TOOL):
            calls.append(torch.nn.functional.gelu(torch.ones(50)).sum())
    stop.set()
    thread.join()
    assert failures == [] and len(calls) > 10


@pytest.mark.filterwarnings("ignore")
def test_a_forked_child_computes_and_annotates(heard):
    receive, send = os.pipe()
    with fastprof.layer("around"):
        child = os.fork()
        if child == 0:
            try:
                total = torch.nn.functional.relu(torch.ones(3)).add(1).sum().item()
                os.write(send, str(total).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    assert os.read(receive, 10) == b"6.0"
    os.close(receive), os.close(send)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_give_the_same_batches(workers):
    def batches():
        torch.manual_seed(3)
        loader = DataLoader(Squares(), batch_size=2, shuffle=True, num_workers=workers)
        return [*loader], len(loader), [torch.rand(1)]

    plain, *annotated = outcomes(batches)
    assert annotated == [plain] * 3 and len(plain[1][0][1]) == 3


def test_each_batch_of_a_loader_has_one_range(annotated):
    with listening(TOOL) as heard:
        assert len([*DataLoader([1, 2, 3])]) == 3
    batches = [text for text in heard.texts() if "'op': 'DataLoader'" in text]
    assert len(batches) == 4  # the last call raises StopIteration
    assert heard.is_nested()


def test_spawned_processes_get_models_that_hold_functions(tmp_path):
    script = tmp_path / "spawning.py"
    script.write_text(
        textwrap.dedent("""
            import torch, torch.multiprocessing as mp, fastprof

            def work(rank, model, built, queue):
                queue.put((rank, model.eval()(torch.ones(1, 2, 4)).sum().item(), built))

            if __name__ == "__main__":
                before = torch.nn.TransformerEncoderLayer(4, 2, 8).eval()
                expected = before(torch.ones(1, 2, 4)).sum().item()
                fastprof.init()
                queue = mp.get_context("spawn").SimpleQueue()
                context = mp.spawn(work, (before, torch.nn.functional.relu, queue), 1, join=False)
                found = sorted((queue.get() for _ in range(1)), key=lambda each: each[0])
                while not context.join():
                    pass
                assert len(found) == 1
                assert all(abs(each[1] - expected) < 1e-5 for each in found)
                assert found[0][2] is torch.nn.functional.relu
                print("done")
        """)
    )
    done = torch_server.run(script)
    assert done.stdout == "done\n", done.stderr[-3000:]


DISTRIBUTED = """
    import json, sys
    import torch, torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    from torch.nn import functional
    from torch.nn.parallel import DistributedDataParallel
    import fastprof

    rank, path = int(sys.argv[1]), sys.argv[2]
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)

    def train(annotate):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        model = DistributedDataParallel(model)
        if annotate:
            fastprof.annotate_layers(model, "net")
        optimizer = torch.optim.Adam(model.parameters())
        x = torch.linspace(0, rank + 1, 8).reshape(2, 4)
        for _ in range(2):
            optimizer.zero_grad()
            functional.mse_loss(model(x), torch.ones(2, 2)).backward()
            optimizer.step()
        return [p.tolist() for p in model.parameters()] + sharded(x)

    def sharded(x):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
        for part in (*model, model):
            fully_shard(part, mesh=dist.device_mesh.init_device_mesh("cpu", (2,)))
        model(x).sum().backward()
        return [p.grad.full_tensor().tolist() for p in model.parameters()]

    def exchange(held):
        total = torch.full((3,), float(rank))
        dist.all_reduce(total)
        gathered = [torch.zeros(1) for _ in range(2)]
        dist.all_gather(gathered, torch.full((1,), float(rank)))
        objects = [None, None]
        dist.all_gather_object(objects, {"rank": rank, "activation": functional.relu})
        assert objects[1]["activation"] is functional.relu
        listed = [held if rank == 0 else None]
        dist.broadcast_object_list(listed, 0)
        dist.barrier()
        return [total.tolist(), [each.item() for each in gathered], type(listed[0]).__name__]

    held = torch.nn.TransformerEncoderLayer(4, 2, 8)
    plain = train(False) + exchange(held)
    fastprof.init()
    with torch.profiler.profile() as profile:
        annotated = train(True) + exchange(held)
    names = {event.name() for event in profile.profiler.kineto_results.events()}
    ops = [name.split("'")[7] for name in names if "'mod': 'torch.distributed'" in name]
    layers = sorted(name for name in names if name.startswith("layer:"))
    print(json.dumps([plain, annotated, ops, layers]))
    dist.destroy_process_group()
"""


def test_processes_that_train_together_get_the_same_numbers(tmp_path):
    script = tmp_path / "training.py"
    script.write_text(textwrap.dedent(DISTRIBUTED))
    ranks = [
        subprocess.Popen(
            torch_server.command(script, str(rank), tmp_path / "store"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    for each in ranks:
        stdout, stderr = each.communicate(timeout=PATIENCE)
        assert each.returncode == 0, stderr.decode()[-3000:]
        plain, annotated, ops, layers = json.loads(stdout.splitlines()[-1])
        assert annotated == plain
        assert {"all_reduce", "all_gather", "broadcast_object_list", "barrier"} <= {*ops}
        assert layers == ["layer:net", "layer:net.0", "layer:net.1", "layer:net.2"]


def test_ranges_of_a_thread_that_the_profiler_does_not_see_are_not_its(annotated):
    with listening(PROFILER) as heard:
        in_threads(lambda: described(torch.ones(2).add(1)))
        torch.ones(1)
    assert heard.is_nested() and heard.texts()

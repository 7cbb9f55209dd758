"""Lightning's Trainer with fastprof's profiler: what is captured, named, timed and put back."""

import importlib.util
import os
import pickle
import subprocess
import sys

import pytest

from fastprof.errors import CaptureError, MissingDependencyError
from fastprof.model.call import Tensor
from fastprof.model.markers import Kind
from support.nvtx_read_back import read_back

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
pytest.importorskip("nvtx", reason="nvtx is not installed: pip install nvtx")
lightning = pytest.importorskip(
    "lightning.pytorch", reason="Lightning is not installed: pip install lightning"
)

import fastprof
from fastprof._core import _layers
from fastprof.annotate import lightning as integration
from fastprof.annotate.lightning import FastprofProfiler
from support import torch_server
from support.waiting import PATIENCE, in_threads

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(does not have many workers|isinstance.treespec|have no `val_dataloader`).*"
)
RELU = torch.relu


class Net(lightning.LightningModule):
    def __init__(self, fails_at=None):
        super().__init__()
        self.body = torch.nn.Linear(8, 4)
        self.head = torch.nn.Linear(4, 2)
        self.fails_at = fails_at

    def forward(self, x):
        return self.head(self.body(x).relu())

    def training_step(self, batch, batch_idx):
        loss = self(batch).square().mean()
        if batch_idx == self.fails_at:
            raise ArithmeticError("as it was asked to")
        return loss

    def validation_step(self, batch, batch_idx):
        if batch_idx == self.fails_at:
            raise ArithmeticError("as it was asked to")
        self.log("loss", self(batch).square().mean())

    def test_step(self, batch, batch_idx):
        self(batch)

    def predict_step(self, batch, batch_idx):
        return self(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def batches(n):
    """Batches that are told apart by their sizes: 1, 2, .. n."""
    data = [torch.arange(8.0).repeat(size, 1) for size in range(1, n + 1)]
    return torch.utils.data.DataLoader(data, batch_size=None)


def trainer(profiler, directory, **options):
    return lightning.Trainer(
        **{
            "profiler": profiler,
            "accelerator": "cpu",
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "max_epochs": 1,
            "default_root_dir": directory,
            **options,
        }
    )


def batch_sizes(ranges, layer="body"):
    """The sizes of the batches that a layer worked on."""
    return [
        next(arg.value.shape[0] for arg in range_.meaning.call.args if type(arg.value) is Tensor)
        for range_ in ranges
        if range_.meaning.kind == Kind.ARGUMENT
        and range_.meaning.call.op == "linear"
        and layers_around(range_) == [layer]
    ]


def layers_around(range_):
    return [each.meaning.name for each in range_.chain() if each.meaning.kind == Kind.LAYER]


def users(ranges):
    """The names of ranges that are neither torch's nor fastprof's: those of actions, of steps."""
    return [range_.meaning.name for range_ in ranges if range_.meaning.kind == Kind.USER]


def assert_all_is_off():
    assert not torch._C._autograd._profiler_enabled()
    assert _layers._of_thread.open == []
    assert torch.relu is RELU


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A profiler after a training of eight batches, of which two were captured; and its trace."""
    directory = tmp_path_factory.mktemp("fitted")
    profiler = FastprofProfiler(directory, "net", wait=2, warmup=1, active=2)
    trainer(profiler, directory).fit(Net(), batches(8), batches(2))
    assert_all_is_off()
    return profiler, read_back(profiler.trace)


def test_the_chosen_batches_are_captured_and_no_others(fitted):
    _, ranges = fitted
    assert batch_sizes(ranges) == [4, 5]
    texts = users(ranges)
    assert [text for text in texts if text.startswith("ProfilerStep")] == [
        "ProfilerStep#3",
        "ProfilerStep#4",
    ]
    assert texts.count("run_training_batch") == 2
    assert not [text for text in texts if "validation_step" in text]


def test_layers_stand_inside_the_actions_of_lightning(fitted):
    _, ranges = fitted
    layers = [range_ for range_ in ranges if range_.meaning.kind == Kind.LAYER]
    assert [range_.meaning.name for range_ in layers] == ["body", "head"] * 2
    for range_ in layers:
        around = users(range_.chain())
        assert [text for text in around if "#" not in text] == [
            "run_training_batch",
            "[LightningModule]Net.optimizer_step",
            "[Strategy]SingleDeviceStrategy.training_step",
        ]


def test_backward_runs_inside_its_action(fitted):
    _, ranges = fitted
    nodes = [range_ for range_ in ranges if range_.meaning.autograd_node]
    assert len({range_.seq for range_ in nodes}) > 4
    for range_ in nodes:
        assert "[Strategy]SingleDeviceStrategy.backward" in users(range_.chain())


def test_the_trace_and_the_summary_lie_where_lightning_puts_its_files(fitted):
    profiler, _ = fitted
    directory = profiler.trace.parent
    assert sorted(path.name for path in directory.iterdir()) == ["fit-net.json.gz", "fit-net.txt"]
    text = (directory / "fit-net.txt").read_text()
    assert text.startswith("FIT Profiler Report")
    assert f"captured 2 of 2 train batches: {profiler.trace}" in text
    assert f"fastprof info {profiler.trace}" in text


def test_the_summary_times_actions_by_the_wall_clock(fitted):
    profiler, _ = fitted
    lines = profiler.summary().splitlines()
    (line,) = (line for line in lines if line.startswith("run_training_batch "))
    _, clock, calls, total, mean, least, most = line.split()
    assert (clock, calls) == ("wall", "8")
    assert 0 < float(least) <= float(mean) <= float(most) <= float(total)
    assert len(lines) < 40
    assert any(line.startswith("run_training_epoch ") for line in lines)


@pytest.mark.parametrize(
    ("stage", "step"),
    [("validate", "validation_step"), ("test", "test_step"), ("predict", "predict_step")],
)
def test_other_stages_are_captured_too(tmp_path, stage, step):
    profiler = FastprofProfiler(tmp_path, stage=stage, wait=1, warmup=1, active=1)
    run = getattr(trainer(profiler, tmp_path), stage)
    run(Net(), batches(4))
    assert profiler.trace == tmp_path / f"{stage}-fastprof.json.gz"
    ranges = read_back(profiler.trace)
    assert batch_sizes(ranges) == [3]
    assert f"[Strategy]SingleDeviceStrategy.{step}" in users(ranges)
    assert_all_is_off()


def test_validation_batches_of_a_training_count_without_the_sanity_check(tmp_path):
    profiler = FastprofProfiler(tmp_path, stage="validate", wait=1, warmup=1, active=2)
    trainer(profiler, tmp_path, num_sanity_val_steps=2).fit(Net(), batches(2), batches(5))
    assert profiler.trace == tmp_path / "fit-fastprof.json.gz"
    assert batch_sizes(read_back(profiler.trace)) == [3, 4]


def test_batches_of_several_epochs_are_counted_on(tmp_path):
    profiler = FastprofProfiler(tmp_path, wait=0, warmup=2, active=2)
    trainer(profiler, tmp_path, max_epochs=3).fit(Net(), batches(2))
    ranges = read_back(profiler.trace)
    assert batch_sizes(ranges) == [1, 2]
    assert "run_training_epoch" not in users(ranges)  # it would cross those of the steps


@pytest.mark.parametrize("with_callbacks", [False, True])
@pytest.mark.filterwarnings("ignore:FastprofProfiler")
def test_an_exception_leaves_nothing_open_and_a_trace_that_can_be_read(tmp_path, with_callbacks):
    profiler = FastprofProfiler(tmp_path, wait=1, warmup=1, active=4)
    run = trainer(profiler, tmp_path, enable_model_summary=with_callbacks)
    with pytest.raises(ArithmeticError, match="as it was asked to"):
        run.fit(Net(fails_at=3), batches(8))
    assert_all_is_off()
    ranges = read_back(profiler.trace)
    assert batch_sizes(ranges) == [3, 4]
    assert all(range_.end is not None for range_ in ranges)
    assert "captured 1 of 4 train batches" in profiler.summary()


@pytest.mark.filterwarnings("ignore:FastprofProfiler")
def test_after_an_exception_the_same_profiler_serves_again(tmp_path):
    profiler = FastprofProfiler(tmp_path, wait=1, warmup=1, active=1)
    with pytest.raises(ArithmeticError):
        trainer(profiler, tmp_path).fit(Net(fails_at=0), batches(4))
    assert profiler.trace is None
    trainer(profiler, tmp_path).fit(Net(), batches(4))
    assert batch_sizes(read_back(profiler.trace)) == [3]


@pytest.mark.filterwarnings("ignore:FastprofProfiler")
def test_an_exception_in_validation_leaves_nothing_open(tmp_path):
    profiler = FastprofProfiler(tmp_path, stage="validate", wait=0, warmup=1, active=2)
    with pytest.raises(ArithmeticError):
        trainer(profiler, tmp_path).validate(Net(fails_at=1), batches(3), verbose=False)
    assert_all_is_off()


@pytest.mark.filterwarnings("ignore:FastprofProfiler")
@pytest.mark.parametrize("method", ["fit", "validate"])
def test_an_exception_in_a_loader_leaves_nothing_open(tmp_path, method):
    def broken():
        yield torch.zeros(1, 8)
        raise ArithmeticError("no more")

    profiler = FastprofProfiler(tmp_path, wait=0, warmup=1, active=2)
    # No action is around the loader of a validation: a callback is told of the exception.
    run = trainer(profiler, tmp_path, enable_model_summary=method == "validate")
    with pytest.raises(ArithmeticError):
        getattr(run, method)(Net(), broken())
    assert_all_is_off()


def test_too_few_batches_are_a_warning_that_says_how_many_are_needed(tmp_path):
    profiler = FastprofProfiler(tmp_path)
    with pytest.warns(RuntimeWarning, match="expected 13 train batches, found 3"):
        trainer(profiler, tmp_path).fit(Net(), batches(3))
    assert profiler.trace is None
    assert "nothing was captured" in profiler.summary()


def test_a_trace_that_cannot_be_saved_does_not_end_the_training(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch.profiler.profile, "export_chrome_trace", full)
    profiler = FastprofProfiler(tmp_path, wait=1, warmup=1, active=1)
    run = trainer(profiler, tmp_path)
    with pytest.warns(RuntimeWarning, match="cannot save the trace: no space left on the disk"):
        run.fit(Net(), batches(5))
    assert run.global_step == 5
    assert "captured 1 of 1 train batches, but their trace was not saved" in profiler.summary()
    assert_all_is_off()


def test_layers_are_an_option_and_are_taken_off_again(tmp_path):
    model = Net()
    profiler = FastprofProfiler(tmp_path, wait=0, warmup=1, active=1, layers=False)
    trainer(profiler, tmp_path).fit(model, batches(3))
    assert [r for r in read_back(profiler.trace) if r.meaning.kind == Kind.LAYER] == []
    trainer(FastprofProfiler(tmp_path, wait=0, warmup=1), tmp_path).fit(model, batches(3))
    assert all(not module._forward_hooks for module in model.modules())


def test_an_init_of_the_users_own_stays(tmp_path):
    with fastprof.init():
        profiler = FastprofProfiler(tmp_path, wait=0, warmup=1)
        trainer(profiler, tmp_path).fit(Net(), batches(3))
        assert torch.relu is not RELU
    assert torch.relu is RELU


def test_path_says_where_the_trace_goes(tmp_path):
    path = tmp_path / "mine.json"
    profiler = FastprofProfiler(tmp_path / "other", "name", path=path, wait=0, warmup=1)
    trainer(profiler, tmp_path).fit(Net(), batches(3))
    assert profiler.trace == path
    assert batch_sizes(read_back(path)) == [2]


def test_each_rank_has_a_trace_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    profiler = FastprofProfiler(tmp_path, wait=0, warmup=1)
    profiler.setup("fit", local_rank=1)
    for _ in range(2):
        with profiler.profile("[_TrainingEpochLoop].train_dataloader_next"):
            pass
        with profiler.profile("[LightningModule]Net.on_train_batch_end"):
            pass
    assert profiler.trace == tmp_path / "fit-1-fastprof.rank3.json.gz"
    assert profiler.trace.exists()
    profiler.teardown("fit")
    assert_all_is_off()


def test_actions_that_cross_or_were_never_started_do_no_harm():
    profiler = FastprofProfiler()
    profiler.stop("never")
    profiler.start("outer")
    profiler.start("inner")
    profiler.stop("outer")
    assert _layers._of_thread.open == []
    profiler.stop("inner")
    in_threads(lambda: profiler.stop("outer"))
    lines = profiler.summary().splitlines()
    assert sorted(line.split()[0] for line in lines if " wall " in line) == ["inner", "outer"]


def test_nvtx_is_told_of_all_actions_and_nothing_stays_open(record_nvtx, tmp_path):
    recording = record_nvtx(
        """
        import sys
        import warnings
        import torch
        import lightning.pytorch as lightning
        from fastprof.annotate.lightning import FastprofProfiler

        warnings.simplefilter("ignore")

        class Net(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.body = torch.nn.Linear(8, 2)
            def training_step(self, batch, batch_idx):
                if batch_idx == 3:
                    raise ArithmeticError
                return self.body(batch).mean()
            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.1)

        profiler = FastprofProfiler(sys.argv[1], wait=0, warmup=1, active=4)
        profiler.start("crosses")
        profiler.start("is crossed")
        profiler.stop("crosses")
        profiler.stop("is crossed")
        trainer = lightning.Trainer(
            profiler=profiler, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, max_epochs=1, default_root_dir=sys.argv[1],
        )
        try:
            trainer.fit(Net(), torch.utils.data.DataLoader(torch.zeros(6, 8)))
        except ArithmeticError:
            print("failed")
        """,
        str(tmp_path),
        with_torch=True,
    )
    assert recording.stdout.endswith("failed\n")
    assert (recording.open_ranges, recording.stray) == ([], 0)
    texts = recording.texts()
    assert texts.count("run_training_batch") == 4
    assert texts.count("layer:body") == 3
    assert recording.one("is crossed").end <= recording.one("crosses").end


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stage": "fit"}, "stage='fit': expected one of 'train', 'validate'"),
        ({"wait": -1}, "wait=-1"),
        ({"active": 0}, "active=0"),
        ({"backend": "nvprof"}, "backend='nvprof'"),
        ({"path": "trace.txt"}, r"expected a name ending in \.json"),
    ],
)
def test_bad_arguments_are_refused_before_the_training(arguments, message):
    with pytest.raises(CaptureError, match=message):
        FastprofProfiler(**arguments)


def test_a_profiler_can_be_sent_to_another_process():
    profiler = pickle.loads(pickle.dumps(FastprofProfiler("here", "net", wait=7)))
    assert (profiler.dirpath, profiler.filename) == ("here", "net")
    assert "wait=7" in profiler.summary()


def test_without_lightning_the_extra_is_named(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])

    monkeypatch.setattr(integration, "import_module", missing)
    with pytest.raises(MissingDependencyError, match=r"pip install 'fastprof\[lightning\]'"):
        integration._profiler_class()


def test_a_lightning_that_cannot_be_imported_says_why(monkeypatch):
    def broken(name):
        raise ModuleNotFoundError("No module named 'torchmetrics'", name="torchmetrics")

    monkeypatch.setattr(integration, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="torchmetrics"):
        integration._profiler_class()


def test_the_package_that_the_program_uses_is_the_one_that_is_served(tmp_path):
    assert issubclass(FastprofProfiler, lightning.profilers.Profiler)
    if importlib.util.find_spec("pytorch_lightning") is None:
        pytest.skip("the package pytorch_lightning is not installed, lightning alone is")
    program = (
        "import pytorch_lightning.profilers as profilers\n"
        "from fastprof.annotate.lightning import FastprofProfiler\n"
        "assert issubclass(FastprofProfiler, profilers.Profiler)"
    )
    torch_server.run_source(program, tmp_path)


def test_fastprof_alone_does_not_import_lightning():
    program = (
        "import sys, fastprof, fastprof.integrations\n"
        "fastprof.init\n"
        "assert 'torch' in sys.modules\n"
        "assert not {'lightning', 'pytorch_lightning'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ, timeout=PATIENCE)

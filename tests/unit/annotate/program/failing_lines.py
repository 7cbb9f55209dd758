"""Trains under `fastprof run`, many times: another line of fastprof raises MemoryError each time.

python failing_lines.py FOLDER PARTS PART [CONDITION]

Lines are those that run between the import of torch and the end of the program. Prints a line for
each run that differs from one without fastprof, and the number of lines.
"""

import contextlib
import io
import signal
import sys
from pathlib import Path

import torch

import fastprof
from fastprof.annotate.program.layers import LayerAnnotation
from fastprof.annotate.program.program import RecordedProgram
from fastprof.runs.facts import Settings

HOME = str(Path(fastprof.__file__).parent)
PARTS = ("program/", "recorders.py", "layers.py", "unrecorded.py")
ROOMS = (f"{HOME}/_system/", *(f"{HOME}/annotate/{part}" for part in PARTS))
# A few lines around the guard, which only pass on a call.
ALLOWED = {"__call__", "begin", "quietly", "<lambda>", "_usr2", "_end", "ended", "is_main_thread"}
# These undo what was done; if one fails, what is left does nothing.
UNDOING = {"_rest", "close", "revert", "remove", "stop", "release", "_failed", "abandon", "_kinds",
           "annotate_no_more", "undo", "_restore", "end", "_over", "_finish"}  # fmt: skip


class Fault:
    """Raises MemoryError at the n-th line of fastprof; counts the lines."""

    def __init__(self, number):
        self.number, self.n_lines, self.where = number, 0, None

    def __call__(self, frame, event, _):
        code = frame.f_code
        if code.co_filename.startswith(ROOMS) and code.co_name not in ALLOWED:
            return self.line
        return None

    def line(self, frame, event, _):
        if event == "line":
            self.n_lines += 1
            if self.n_lines == self.number:
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                self.names = set()
                while frame is not None:
                    self.names.add(frame.f_code.co_name)
                    frame = frame.f_back
                raise MemoryError("injected")
        return self.line


def train(n_steps):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(n_steps):
        optimizer.zero_grad()
        net(torch.randn(2, 4)).sum().backward()
        optimizer.step()
    return net


def differences(net, plain, fault, said):
    for one, other in zip(net.parameters(), plain.parameters(), strict=True):
        if not torch.equal(one, other):
            yield "other weights"
    if torch.autograd._profiler_enabled():
        yield "the profiler is on"
    if len(said.splitlines()) > 1 or "Traceback" in said:
        yield f"prints {said!r}"
    if fault.where is not None and UNDOING & fault.names:
        return
    if "_around" in type(torch.optim.SGD.step).__module__:
        yield "SGD.step is ours"
    if torch.nn.Module.__call__ is not CALL:
        yield "Module.__call__ is ours"
    if any(module._forward_hooks or module._forward_pre_hooks for module in net.modules()):
        yield "there are hooks"
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield "a signal handler is left"


CALL = torch.nn.Module.__call__


def run(number, folder, plain, n_steps, **settings):
    fault, said = Fault(number), io.StringIO()
    folder.mkdir(exist_ok=True)
    program = RecordedProgram(Settings(str(folder), 2, 4, **settings), LayerAnnotation(False))
    with contextlib.redirect_stderr(said):
        try:
            sys.settrace(fault)
            program.begin()
            net = train(n_steps)
            program.ended()
        except Exception as error:
            sys.settrace(None)
            print(f"line {number}, {fault.where}: {error!r} reaches the program")
            return fault
        finally:
            sys.settrace(None)
    for difference in differences(net, plain, fault, said.getvalue()):
        print(f"line {number}, {fault.where}: {difference}")
    left = [path.name for path in folder.iterdir() if not path.name.startswith(("status", "trace"))]
    if left:
        print(f"line {number}, {fault.where}: leaves {left}")
    for path in folder.iterdir():
        path.unlink()
    return fault


if __name__ == "__main__":
    folder, parts, part = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    settings, n_steps = {}, 6
    if len(sys.argv) > 4:
        settings, n_steps = {"when": sys.argv[4], "times": 2}, 24
    fastprof.init()
    plain = train(n_steps)
    n_lines = run(0, folder, plain, n_steps, **settings).n_lines
    for number in range(1 + part, n_lines + 1, parts):
        run(number, folder, plain, n_steps, **settings)
    print(n_lines, "lines")

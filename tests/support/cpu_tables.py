"""Records training steps on the CPU; writes each trace, and torch's own tables of it as JSON."""

import json
import sys
from pathlib import Path

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.autograd.profiler_util import EventList
from torch.profiler import ProfilerActivity, profile, record_function


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 4, 3)
        self.inner = torch.nn.Sequential(torch.nn.Linear(36, 16), torch.nn.ReLU())
        self.rnn = torch.nn.LSTM(16, 8)
        self.last = torch.nn.Linear(8, 3)

    def forward(self, x):
        x = torch.relu(self.conv(x)).flatten(1)
        x = self.inner(x)
        x, _ = self.rnn(x)
        return self.last(x)


def nested(x, depth):
    with record_function("nested"):
        x = x.to(torch.float64) * 2
        return nested(x, depth - 1) if depth else x.to(torch.float32)


def step(net, optimizer, i):
    with record_function(f"step {i}"):
        x = nested(torch.randn(5, 2, 5, 5), 3)
        loss = torch.nn.functional.cross_entropy(net(x), torch.tensor([0, 1, 2, 0, 1]))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def is_repeated(event):
    """Whether an event is `detach` inside `aten::detach`: one call, recorded twice."""
    return event.cpu_parent is not None and event.cpu_parent.name == f"aten::{event.name}"


def of_operators(events):
    """The events without Python functions; torch counts these as operators otherwise."""
    result = EventList(
        [event for event in events if not event.is_python_function and not is_repeated(event)]
    )
    for event in result:
        event.cpu_children, event.cpu_parent = [], None
    result._build_tree()
    return result


def table(averages):
    return [
        {
            "name": average.key,
            "shapes": str(average.input_shapes),
            "calls": average.count,
            "self": round(average.self_cpu_time_total * 1000),
            "total": round(average.cpu_time_total * 1000),
            "memory": average.cpu_memory_usage,
            "self_memory": average.self_cpu_memory_usage,
        }
        for average in averages
    ]


def is_backward(event):
    if event is None or event.name.startswith("autograd::engine::"):
        return event is not None
    return event.scope == 1 or is_backward(event.cpu_parent)


def lines(events):
    """Calls and self time by the innermost line of this program; torch finds few of backward."""
    result = {}
    for event in events:
        if is_backward(event):
            continue
        own = [each for each in event.stack if each.startswith(f"{Path(__file__).name}(")]
        row = result.setdefault(own[0] if own else None, [0, 0.0])
        row[0] += 1
        row[1] += event.self_cpu_time_total
    return [[line, calls, round(time * 1000)] for line, (calls, time) in result.items()]


OPTIONS = {
    "plain": {},
    "shapes": {"record_shapes": True, "profile_memory": True},
    "stack": {"with_stack": True, "experimental_config": _ExperimentalConfig(verbose=True)},
}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), foreach=False)
    step(net, optimizer, -1)
    for name, options in OPTIONS.items():
        with profile(activities=[ProfilerActivity.CPU], **options) as recording:
            for i in range(2):
                step(net, optimizer, i)
        recording.export_chrome_trace(str(folder / f"{name}.json"))
        events = of_operators(recording.events())
        tables = {
            "by_op": table(events.key_averages()),
            "by_shape": table(events.key_averages(group_by_input_shapes=True)),
            "by_line": lines(events),
        }
        (folder / f"{name}.tables.json").write_text(json.dumps(tables))

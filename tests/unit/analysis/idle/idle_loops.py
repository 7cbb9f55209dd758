"""Loops with one cause of idle time each, recorded on the CPU: FOLDER/NAME.json."""

import sys
import time
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader, Dataset

STEPS = 5
WAIT = 0.1  # seconds; the rest of a step takes up to 0.02 on slow machines


class Slow(Dataset):
    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        time.sleep(WAIT)
        return torch.ones(8, 8)


def work(value):
    for _ in range(10):
        value = value.add(1)
    return value


def with_item():
    for _ in range(STEPS):
        loss = work(torch.ones(8)).sum().item()  # waits
        time.sleep(WAIT)  # logs the loss
        assert loss > 0


def with_slow_loader():
    for batch in DataLoader(Slow()):
        work(batch)


def with_slow_python():
    for _ in range(STEPS):
        work(torch.ones(8))
        time.sleep(WAIT)


for loop in (with_item, with_slow_loader, with_slow_python):
    with profile(activities=[ProfilerActivity.CPU], with_stack=True) as recorded:
        loop()
    recorded.export_chrome_trace(str(Path(sys.argv[1]) / f"{loop.__name__}.json"))

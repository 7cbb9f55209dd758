"""A training program to run alone and under `fastprof run`; writes its times as JSON to a file.

python -m bench.annotated_program OUT SECONDS [STEPS]

It trains for SECONDS, or for STEPS steps. Times are processor time in s, which a busy machine
changes little: `total` from the start of Python to the last function at exit, `import` until torch
is imported, `steps` of the training thread.
"""

import atexit
import json
import sys
import time


def main() -> None:
    path, seconds = sys.argv[1], float(sys.argv[2])
    most = int(sys.argv[3]) if len(sys.argv) > 3 else 1 << 30
    steps: list[float] = []
    imported = 0.0

    def write() -> None:
        with open(path, "w") as file:
            json.dump({"total": time.process_time(), "import": imported, "steps": steps}, file)

    atexit.register(write)  # runs after the functions of fastprof, which registers them later
    import torch

    imported = time.process_time()
    from bench.annotated_steps import Net

    torch.set_num_threads(1)
    net, x, t = Net(), torch.randn(1, 3, 4, 4), torch.randn(1, 16)
    optimizer = torch.optim.Adam(net.parameters(), foreach=True)
    while sum(steps) < seconds and len(steps) < most:
        start = time.thread_time()
        optimizer.zero_grad()
        net(x, t).square().mean().backward()
        optimizer.step()
        steps.append(time.thread_time() - start)


if __name__ == "__main__":
    main()

"""A small network, bound by launches: 16 layers of 256. --graph is the whole step as one graph.

--big makes it bound by the GPU, and --item waits for the GPU in each step.
"""

import torch
from common import DEVICE, options, run
from torch import nn

args = options("graph compile item fused big", steps=60)
WIDTH = 2048 if args.big else 256
model = nn.Sequential()
for _ in range(16):
    model.extend([nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.ReLU()])
model.to(DEVICE)
optimizer = torch.optim.Adam(
    model.parameters(), 1e-3, capturable=args.graph, fused=args.fused or None
)
x, y = torch.randn(64, WIDTH, device=DEVICE), torch.randn(64, WIDTH, device=DEVICE)
forward = torch.compile(model, mode="reduce-overhead") if args.compile else model


def eager():
    optimizer.zero_grad(set_to_none=not args.graph)
    loss = (forward(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    return loss


def captured():
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(4):
            eager()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = eager()

    def replay():
        graph.replay()
        return loss

    return replay


work = captured() if args.graph else eager


def step():
    loss = work()
    if args.item:
        loss.item()


run(step, args, warm_up=30, n=200)

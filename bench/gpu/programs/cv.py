"""ResNet-50 training: one thread loads, pageable copies, fp32 without tensor cores, NCHW.

It also fills gradients with zeros, reads the loss in each step, and its Adam is not fused.
"""

import torch
import torchvision
from common import DEVICE, options, run
from torch.utils.data import DataLoader, Dataset

args = options("amp cl tf32 workers pin none noitem fused compile nodata", batch=64, size=224)
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.tf32


class Images(Dataset):
    def __init__(self):
        self.images = torch.randint(0, 255, (64, 3, args.size, args.size), dtype=torch.uint8)

    def __len__(self):
        return 1_000_000

    def __getitem__(self, i):
        image = self.images[i % 64].float().div_(255)
        return (image - 0.45) / 0.225, i % 1000


model = torchvision.models.resnet50().to(DEVICE)
if args.cl:
    model = model.to(memory_format=torch.channels_last)
optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=args.fused or None)
criterion = torch.nn.CrossEntropyLoss()
forward = torch.compile(model) if args.compile else model
workers = 8 if args.workers else 0
loader = DataLoader(
    Images(), batch_size=args.batch, num_workers=workers, pin_memory=args.pin,
    persistent_workers=args.workers,
)  # fmt: skip
batches = iter(loader)
if args.nodata:
    kept = [each.to(DEVICE) for each in next(batches)]
total = 0.0


def step():
    global total
    if args.nodata:
        x, y = kept
    else:
        x, y = next(batches)
        x, y = x.to(DEVICE, non_blocking=args.pin), y.to(DEVICE, non_blocking=args.pin)
    if args.cl:
        x = x.contiguous(memory_format=torch.channels_last)
    optimizer.zero_grad(set_to_none=args.none)
    with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=args.amp):
        loss = criterion(forward(x), y)
    loss.backward()
    optimizer.step()
    if not args.noitem:
        total += loss.item()


run(step, args, warm_up=6, n=10)

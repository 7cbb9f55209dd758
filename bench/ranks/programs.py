"""Programs of simulated runs: data, tensor, expert and pipeline parallel training."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from bench.ranks.model import Model
from bench.ranks.program import (
    BACKWARD,
    FORWARD,
    Collective,
    Groups,
    Load,
    Operation,
    Program,
    Python,
    Ranks,
    Receive,
    Send,
    Synchronise,
    Wait,
    transfer_ns,
    world,
)

Around = Callable[[int], list[Operation]]  # the operations around a block, by its number


def _collective(
    n_ranks: int, groups: Groups, kind: str, elements: int, *, dtype: str = "bfloat16",
    bandwidth: float = 200e9, **others: Any,
) -> Collective:  # fmt: skip
    members = groups.ranks.ravel()
    n_bytes = elements * (2 if dtype == "bfloat16" else 4)
    return Collective(
        groups=groups.key, kind=kind, elements=elements, dtype=dtype,
        transfer=transfer_ns(kind, n_bytes, groups.size, bandwidth),
        ranks=None if len(members) == n_ranks else members, **others,
    )  # fmt: skip


@dataclass(eq=False, kw_only=True)
class _Around:
    """Operations before, in the middle of and behind each block of a pass."""

    before: Around = lambda block: []
    middle: Around = lambda block: []
    behind: Around = lambda block: []

    def add(self, block: int, first: list[Operation], second: list[Operation]) -> list[Operation]:
        """The operations of a block with those around it."""
        return [
            *self.before(block), *first, *self.middle(block), *second, *self.behind(block),
        ]  # fmt: skip


def _training(
    model: Model, forward: _Around, backward: _Around, end: list[Operation],
    synchronise: bool, share: int = 1,
) -> list[Operation]:  # fmt: skip
    """A step: data, forward, backward, `end`, the optimizer of a 1/`share` of the weights."""
    step: list[Operation] = [Load(ns=300_000), Python(ns=50_000)]
    for i in range(model.blocks):
        step += forward.add(i, model.forward_attention(i), model.forward_output(i))
    step.append(Python(ns=40_000))
    for i in reversed(range(model.blocks)):
        step += backward.add(i, model.backward_output(i), model.backward_attention(i))
    step += [*end, *model.optimizer(share)]
    return [*step, Synchronise()] if synchronise else step


def ddp(
    n_ranks: int = 8, *, blocks: int = 4, synchronise: bool = True, own_stream: bool = True,
    buffers: bool = False, bandwidth: float = 200e9, bucket: int = 1, **sizes: int,
) -> Program:  # fmt: skip
    """Data parallel: all-reduces of the blocks' gradients, overlapped with the backward pass.

    Parameters
    ----------
    bucket : int
        How many blocks an all-reduce has the gradients of.
    buffers : bool
        Whether rank 0 broadcasts buffers before the forward pass.
    synchronise : bool
        Whether the host waits for the GPU at the end of a step.
    own_stream : bool
        Whether collectives have a stream of their own, or run on the compute stream.
    sizes : int
        `features`, `hidden` and `rows` of `Model`.
    """
    every = world(n_ranks)
    model = Model(blocks, **sizes)

    def reduce(block: int) -> list[Operation]:
        if block % bucket:
            return []
        where = {"key": f"bucket {block}"} if own_stream else {"stream": "compute"}
        size = min(bucket, blocks - block) * model.parameters
        return [
            _collective(
                n_ranks, every, "all_reduce", size, bandwidth=bandwidth, phase=BACKWARD, **where,
            )
        ]  # fmt: skip

    end: list[Operation] = [
        Wait(key=f"bucket {block}", phase=BACKWARD)
        for block in range(0, blocks, bucket)
        if own_stream
    ]
    step = _training(model, _Around(), _Around(behind=reduce), end, synchronise)
    if buffers:
        step.insert(2, _collective(n_ranks, every, "broadcast", 53_120, dtype="float32"))
    return Program("ddp", n_ranks, {every.key: every}, step)


def fsdp(
    n_ranks: int = 8, *, blocks: int = 4, synchronise: bool = True, bandwidth: float = 200e9,
    **sizes: int,
) -> Program:  # fmt: skip
    """Sharded weights: all-gathers fetched a block ahead, reduce-scatters of gradients."""
    every = world(n_ranks)
    model = Model(blocks, **sizes)

    def gather(block: int, phase: str) -> list[Operation]:
        if not 0 <= block < blocks:
            return []
        return [
            _collective(
                n_ranks, every, "all_gather", model.parameters, bandwidth=bandwidth,
                key=f"weights {block}", phase=phase, layer=model.name,
            )
        ]  # fmt: skip

    def ahead(block: int) -> list[Operation]:
        first = gather(0, FORWARD) if block == 0 else []
        wait = Wait(key=f"weights {block}", phase=FORWARD)
        return [*first, wait, *gather(block + 1, FORWARD)]

    def ahead_backward(block: int) -> list[Operation]:
        first = gather(block, BACKWARD) if block == blocks - 1 else []
        wait = Wait(key=f"weights {block}", phase=BACKWARD)
        return [*first, wait, *gather(block - 1, BACKWARD)]

    def scatter(block: int) -> list[Operation]:
        return [
            _collective(
                n_ranks, every, "reduce_scatter", model.parameters, bandwidth=bandwidth,
                key=f"gradients {block}", phase=BACKWARD,
            )
        ]  # fmt: skip

    end: list[Operation] = [Wait(key=f"gradients {i}", phase=BACKWARD) for i in range(blocks)]
    step = _training(
        model, _Around(before=ahead), _Around(before=ahead_backward, behind=scatter), end,
        synchronise, n_ranks,
    )  # fmt: skip
    return Program("fsdp", n_ranks, {every.key: every}, step)


def tp_dp(
    n_ranks: int = 16, *, tensor: int = 8, blocks: int = 4, synchronise: bool = True,
    own_stream: bool = True, **sizes: int,
) -> Program:  # fmt: skip
    """Tensor parallel within neighbours, data parallel across.

    Each block all-reduces activations twice in each pass, on the compute path; gradients are
    all-reduced overlapped with the backward pass, over slower links, and their norm among all.

    Parameters
    ----------
    tensor : int
        Ranks of a tensor parallel group.
    own_stream : bool
        Whether these have a stream of their own, or run on the compute stream.
    """
    stream = "" if own_stream else "compute"
    every = world(n_ranks)
    grid = np.arange(n_ranks).reshape(-1, tensor)
    tp, dp = Groups("tp", "mesh_tp", grid), Groups("dp", "mesh_dp", grid.T.copy())
    model = Model(blocks, **{"hidden": 4096 // tensor * 4, **sizes})
    activations = model.rows * model.features

    def reduce(phase: str) -> Around:
        return lambda block: [
            _collective(
                n_ranks, tp, "all_reduce", activations, bandwidth=400e9, phase=phase,
                layer=model.layer(block), stream=stream,
            )
        ]  # fmt: skip

    def gradients(block: int) -> list[Operation]:
        return [
            *reduce(BACKWARD)(block),
            _collective(
                n_ranks, dp, "all_reduce", model.parameters, bandwidth=40e9,
                key=f"bucket {block}", phase=BACKWARD,
            ),
        ]  # fmt: skip

    end: list[Operation] = [Wait(key=f"bucket {i}", phase=BACKWARD) for i in range(blocks)]
    end.append(_collective(n_ranks, every, "all_reduce", 1, dtype="float32"))
    step = _training(
        model, _Around(middle=reduce(FORWARD), behind=reduce(FORWARD)),
        _Around(middle=reduce(BACKWARD), behind=gradients), end, synchronise,
    )  # fmt: skip
    return Program("tp_dp", n_ranks, {"world": every, "tp": tp, "dp": dp}, step)


def experts(
    n_ranks: int = 8, *, size: int = 4, blocks: int = 4, synchronise: bool = True, **sizes: int
) -> Program:
    """Experts: all-to-alls around each second Linear layer in groups of `size` neighbours.

    Gradients are all-reduced among all ranks, overlapped with the backward pass.
    """
    every = world(n_ranks)
    ep = Groups("ep", "mesh_ep", np.arange(n_ranks).reshape(-1, size))
    model = Model(blocks, **sizes)
    tokens = model.rows * model.features

    def exchange(phase: str) -> Around:
        return lambda block: [
            _collective(
                n_ranks, ep, "all_to_all", tokens, phase=phase, layer=model.layer(block)
            )
        ]  # fmt: skip

    def gradients(block: int) -> list[Operation]:
        return [
            *exchange(BACKWARD)(block),
            _collective(
                n_ranks, every, "all_reduce", model.parameters // 4, key=f"bucket {block}",
                phase=BACKWARD,
            ),
        ]  # fmt: skip

    end: list[Operation] = [Wait(key=f"bucket {i}", phase=BACKWARD) for i in range(blocks)]
    step = _training(
        model, _Around(middle=exchange(FORWARD), behind=exchange(FORWARD)),
        _Around(middle=exchange(BACKWARD), behind=gradients), end, synchronise,
    )  # fmt: skip
    return Program("experts", n_ranks, {"world": every, "ep": ep}, step)


@dataclass(eq=False)
class _Stages:
    """A pipeline of stages that each work on a micro batch at a time, in the order 1F1B."""

    grid: Ranks  # [stages, pipelines]
    models: list[Model]  # by stage
    batches: int

    @property
    def last(self) -> int:
        return len(self.grid) - 1

    def order(self) -> list[tuple[int, str, int]]:
        """Stage, pass and micro batch of all passes, each after those that it needs.

        Later stages come first, so that a send never waits for one that is not yet received.
        """
        left = [self._of_stage(stage) for stage in range(len(self.grid))]
        done: dict[tuple[int, str, int], None] = {}
        while any(left):
            stage = max(i for i, each in enumerate(left) if each and self._can(i, *each[0], done))
            pass_, batch = left[stage].pop(0)
            done[stage, pass_, batch] = None
        return list(done)

    def _of_stage(self, stage: int) -> list[tuple[str, int]]:
        warm = min(self.last - stage, self.batches)
        passes = [(FORWARD, i) for i in range(warm)]
        for i in range(self.batches - warm):
            passes += [(FORWARD, warm + i), (BACKWARD, i)]
        return passes + [(BACKWARD, i) for i in range(self.batches - warm, self.batches)]

    def _can(self, stage: int, pass_: str, batch: int, done: Container[Any]) -> bool:
        source = stage + (1 if pass_ == BACKWARD else -1)
        return not 0 <= source <= self.last or (source, pass_, batch) in done

    def run(self, stage: int, pass_: str, batch: int) -> list[Operation]:
        """Receive, compute and send a micro batch."""
        model = replace(self.models[stage], batch=batch)
        blocks = range(model.blocks)
        ops: list[Operation] = []
        step = 1 if pass_ == FORWARD else -1
        if 0 <= stage - step <= self.last:
            ops.append(self._message(Receive, pass_, batch, stage - step, stage))
        for block in blocks if pass_ == FORWARD else reversed(blocks):
            ops += model.forward(block) if pass_ == FORWARD else model.backward(block)
        if 0 <= stage + step <= self.last:
            ops.append(self._message(Send, pass_, batch, stage, stage + step))
        return ops

    def _message(self, kind: Any, pass_: str, batch: int, source: int, target: int) -> Operation:
        model = self.models[0]
        elements = model.rows * model.features
        common = {
            "key": f"{pass_} {batch} {source}", "groups": f"pp_{pass_}", "elements": elements,
            "dtype": "bfloat16", "phase": pass_,
        }  # fmt: skip
        if kind is Send:
            return Send(ranks=self.grid[source], targets=self.grid[target], **common)
        transfer = transfer_ns("send_recv", 2 * elements, 2, 100e9)
        return Receive(
            ranks=self.grid[target], sources=self.grid[source], transfer=transfer, **common
        )


def pipeline(
    n_ranks: int = 8, *, stages: int = 4, batches: int = 8, blocks: int = 1,
    synchronise: bool = True, **sizes: int,
) -> Program:  # fmt: skip
    """Pipeline parallel, 1F1B; the ranks of a stage are data parallel and all-reduce at the end.

    The first and the last stage also all-reduce the gradients of their common embedding.

    Parameters
    ----------
    stages, batches : int
        Stages, and micro batches of a step.
    blocks : int
        Blocks of a stage.
    sizes : int
        `features`, `hidden` and `rows` (of a micro batch) of `Model`.
    """
    grid = np.arange(n_ranks).reshape(stages, -1)
    dp = Groups("dp", "mesh_dp", grid)
    ends = Groups("embedding", "mesh_embedding", grid[[0, -1]].T.copy())
    groups = {"world": world(n_ranks), "dp": dp, ends.key: ends}
    for pass_ in (FORWARD, BACKWARD):
        groups[f"pp_{pass_}"] = Groups(f"pp_{pass_}", f"mesh_pp_{pass_}", grid.T.copy())
    models = [
        Model(blocks, **{"rows": 2048, **sizes}, first=stage * blocks, ranks=ranks)
        for stage, ranks in enumerate(grid)
    ]
    of_stages = _Stages(grid, models, batches)
    step: list[Operation] = [Load(ns=300_000, ranks=grid[0]), Python(ns=50_000)]
    for stage, pass_, batch in of_stages.order():
        step += of_stages.run(stage, pass_, batch)
    if dp.size > 1:
        weights = models[0].parameters * blocks
        step.append(_collective(n_ranks, dp, "all_reduce", weights, phase=BACKWARD))
    embedding = 8192 * models[0].features
    step.append(_collective(n_ranks, ends, "all_reduce", embedding, phase=BACKWARD))
    for model in models:
        step += model.optimizer()
    return Program("pipeline", n_ranks, groups, [*step, Synchronise()] if synchronise else step)


PROGRAMS: Final[dict[str, Callable[..., Program]]] = {
    "ddp": ddp, "fsdp": fsdp, "tp_dp": tp_dp, "experts": experts, "pipeline": pipeline,
}  # fmt: skip

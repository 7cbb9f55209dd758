"""The agents of a recording of rocprofv3, CPUs and GPUs, as devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof.model.arrays import Int64
from fastprof.model.metadata import GpuFigures, positive

_GPU: Final = 2  # rocprofiler_agent_type_t
# HSA_HEAPTYPE: memory of the GPU, which the host may see (public) or not (private).
_LOCAL_HEAPS: Final = (1, 2)


def numbers_of(agents: Mapping[int, Mapping[str, Any]]) -> dict[int, int]:
    """The device of each GPU by handle: its number among the GPUs of the machine.

    That is `logical_node_type_id`; versions without it have the order of `node_id`.
    """
    gpus = {handle: agent for handle, agent in agents.items() if agent.get("type") == _GPU}
    order = sorted(gpus, key=lambda handle: (_whole(gpus[handle].get("node_id")), handle))
    numbers = {}
    for place, handle in enumerate(order):
        own = gpus[handle].get("logical_node_type_id")
        numbers[handle] = own if type(own) is int and own >= 0 else place
    return numbers


def gpus_of(
    processes: Sequence[Mapping[int, Mapping[str, Any]]],
) -> tuple[dict[int, str], dict[int, GpuFigures]]:
    """The names and figures of GPUs by device; a device that processes disagree on is absent.

    The name is the product's, or else that of the architecture, such as gfx950.
    """
    names: dict[int, set[str]] = {}
    figures: dict[int, GpuFigures] = {}
    for agents in processes:
        for handle, number in numbers_of(agents).items():
            agent = agents[handle]
            product, architecture = (str(agent.get(key) or "") for key in ("product_name", "name"))
            names.setdefault(number, set()).add(product or architecture)
            figures[number] = GpuFigures(
                sms=positive(agent.get("cu_count")),
                clock=_hertz(agent.get("max_engine_clk_fcompute")),
                capability=architecture if architecture.startswith("gfx") else None,
                memory=_memory(agent.get("mem_banks")),
            )
    known = {number: next(iter(each)) for number, each in names.items() if len(each) == 1}
    return {number: name for number, name in known.items() if name}, {
        number: figures[number] for number in known
    }


def devices_of(
    processes: Sequence[Mapping[int, Mapping[str, Any]]], process: Int64, handle: Int64
) -> Int64:
    """The device of each handle of an agent of a process; -1 for CPUs and unknown ones."""
    ids, first = alike([process, handle])
    numbers = [numbers_of(agents) for agents in processes]
    pairs = zip(process[first].tolist(), handle[first].tolist(), strict=True)
    known = [numbers[place].get(number, -1) if place >= 0 else -1 for place, number in pairs]
    return take(np.array(known, np.int64), ids)


def _memory(banks: object) -> int | None:
    """The bytes of a GPU's own memory."""
    sizes = [
        positive(bank.get("size_in_bytes")) or 0
        for bank in (banks if isinstance(banks, list) else [])
        if isinstance(bank, dict) and bank.get("heap_type") in _LOCAL_HEAPS
    ]
    return sum(sizes) or None


def _hertz(megahertz: object) -> int | None:
    number = positive(megahertz)
    return None if number is None else number * 10**6


def _whole(value: object) -> int:
    return value if type(value) is int else 0

"""Memory snapshots of torch for tests, made by a small caching allocator.

snapshot = Snapshot()
block = snapshot.allocate(1000, frames("train.py:7 main", "model.py:3 forward"))
snapshot.free(block)
path = snapshot.write(tmp_path / "snapshot.pickle")

The dicts have the keys of `_cuda_memorySnapshot` (torch/csrc/cuda/Module.cpp).
"""

import pickle
from pathlib import Path
from typing import Any

ROUND = 512
SEGMENT = 2 << 20
BASE = 0x7F0000000000


def frames(*texts: str) -> list[dict[str, Any]]:
    """Frames from `FILE:LINE FUNCTION` texts, given outermost first, stored innermost first."""
    result = []
    for text in reversed(texts):
        place, _, name = text.partition(" ")
        file, _, line = place.rpartition(":")
        result.append({"filename": file, "line": int(line), "name": name})
    return result


class Snapshot:
    """An allocator with a history of `device`; `time` is the clock in us."""

    def __init__(self, device: int = 0, devices: int = 1) -> None:
        self.device, self.time = device, 1_700_000_000_000_000
        self.segments: list[dict[str, Any]] = []
        self.traces: list[list[dict[str, Any]]] = [[] for _ in range(devices)]

    def _record(self, action: str, size: int, stack: Any, **others: Any) -> None:
        self.time += 10
        self.traces[self.device].append(
            {"action": action, "size": size, "stream": 0, "time_us": self.time,
             "compile_context": "N/A", "user_metadata": "", "frames": stack or [], **others}
        )  # fmt: skip

    def allocate(self, size: int, stack: Any = None) -> int:
        """Allocate in the first inactive block that is large enough; returns the address."""
        rounded = -(-size // ROUND) * ROUND
        for segment in self.segments:
            for i, block in enumerate(segment["blocks"]):
                if block["state"] == "inactive" and block["size"] >= rounded:
                    rest = block["size"] - rounded
                    if rest:
                        segment["blocks"].insert(
                            i + 1, self._inactive(block["address"] + rounded, rest)
                        )
                    block.update(size=rounded, requested_size=size, state="active_allocated",
                                 frames=stack or [])  # fmt: skip
                    segment["allocated_size"] += rounded
                    segment["active_size"] += rounded
                    self._record("alloc", size, stack, addr=block["address"])
                    return block["address"]
        self._new_segment(max(SEGMENT, -(-rounded // SEGMENT) * SEGMENT), stack)
        return self.allocate(size, stack)

    def _inactive(self, address: int, size: int) -> dict[str, Any]:
        return {"address": address, "size": size, "requested_size": 0, "state": "inactive",
                "frames": []}  # fmt: skip

    def _new_segment(self, size: int, stack: Any) -> None:
        address = BASE + sum(segment["total_size"] for segment in self.segments)
        self.segments.append(
            {"device": self.device, "address": address, "total_size": size, "allocated_size": 0,
             "active_size": 0, "requested_size": 0, "stream": 0, "segment_type": "large",
             "segment_pool_id": (0, 0), "is_expandable": False, "frames": stack or [],
             "blocks": [self._inactive(address, size)]}
        )  # fmt: skip
        self._record("segment_alloc", size, stack, addr=address)

    def free(self, address: int, *, is_completed: bool = True) -> None:
        segment, block = self._find(address)
        self._record("free_requested", block["requested_size"], None, addr=address)
        segment["allocated_size"] -= block["size"]
        block["state"] = "active_pending_free"
        if is_completed:
            self._record("free_completed", block["requested_size"], None, addr=address)
            segment["active_size"] -= block["size"]
            block.update(self._inactive(address, block["size"]))

    def fail(self, size: int, free: int) -> None:
        """An allocation for which CUDA has no memory."""
        self._record("oom", size, None, device_free=free)

    def forget(self, n: int) -> None:
        """Drop the oldest events, as the allocator does beyond `max_entries`."""
        del self.traces[self.device][:n]

    def _find(self, address: int) -> tuple[dict[str, Any], dict[str, Any]]:
        return next(
            (segment, block)
            for segment in self.segments
            for block in segment["blocks"]
            if block["address"] == address
        )

    def data(self) -> dict[str, Any]:
        return {
            "segments": self.segments,
            "device_traces": self.traces,
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                                   "garbage_collection_threshold": 0.0,
                                   "expandable_segments": False,
                                   "roundup_power2_divisions": {"1": 0}},
            "external_annotations": [],
        }  # fmt: skip

    def write(self, path: Path, protocol: int = pickle.DEFAULT_PROTOCOL) -> Path:
        path.write_bytes(pickle.dumps(self.data(), protocol))
        return path

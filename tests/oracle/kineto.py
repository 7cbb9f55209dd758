"""A trace of torch.profiler -> Capture, by the json module."""

import gzip
import json
from pathlib import Path
from typing import Any

from oracle.capture import Capture, Kernel, Range
from oracle.nesting import Instants, nest, tell_waiting
from oracle.nodes import is_node

KINDS = {"cpu_op": "op", "operator": "op", "user_annotation": "user", "python_function": "frame"}
CALLS = {"cuda_runtime", "cuda_driver", "runtime"}


def nanoseconds(microseconds: Any) -> int:
    """Convert the text of a JSON number in µs to ns; half a ns rounds up."""
    whole, _, fraction = str(microseconds).partition(".")
    if not fraction:
        return int(whole) * 1000
    digits = (fraction + "0000")[:4]
    return int(whole) * 1000 + (int(digits) + 5) // 10


def read(path: Path) -> Capture:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return capture(json.loads(text, parse_float=str, strict=False))


def capture(trace: Any) -> Capture:
    """The capture in the JSON of a trace, with the text or a Decimal for each float."""
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    complete = [event for event in events if event.get("ph") == "X"]
    by_category: dict[str, list[dict[str, Any]]] = {}
    for event in complete:
        by_category.setdefault(str(event.get("cat", "")).lower(), []).append(event)
    ranges = [
        _range(each, kind)
        for category, kind in KINDS.items()
        for each in by_category.get(category, ())
    ]
    nest(ranges)
    _tell(ranges, [event for event in events if event.get("cat") == "fwdbwd"])
    calls = {}
    for category in sorted(CALLS):
        for event in by_category.get(category, ()):
            calls.setdefault(event["args"].get("correlation"), event)
    by_id = {
        range_.external: range_ for range_ in ranges if range_.kind == "op" and range_.external
    }
    at = Instants(ranges)
    kernels = [_kernel(each, calls, at, by_id) for each in by_category.get("kernel", ())]
    engine = _autograd_threads(ranges)
    tell_waiting(kernels, engine, at)
    return Capture(ranges, kernels, engine)


class _KinetoRange(Range):
    external: int | None = None


def _range(event: dict[str, Any], kind: str) -> _KinetoRange:
    args = event.get("args", {})
    start = nanoseconds(event["ts"])
    result = _KinetoRange(
        name=event["name"],
        start=start,
        end=start + nanoseconds(event["dur"]),
        thread=(event["pid"], event["tid"]),
        kind=kind,
        seq=args.get("Sequence number"),
        dims=args.get("Input Dims", args.get("Input dims")),
        types=args.get("Input type"),
        concrete=args.get("Concrete Inputs"),
        forward_thread=args.get("Fwd thread id"),
    )
    result.external = args.get("External id")
    return result


def _tell(ranges: list[Range], flows: list[dict[str, Any]]) -> None:
    """Set the forward operator of backward ranges from the flows in the file."""
    at: dict[Any, list[Range]] = {}
    for range_ in ranges:
        if range_.kind == "op" and range_.seq is not None:
            at.setdefault((range_.thread, range_.start), []).append(range_)
    ends: dict[Any, dict[str, Any]] = {}
    for flow in flows:
        ends.setdefault(flow["id"], {})[flow["ph"]] = flow
    for pair in ends.values():
        if len(pair) < 2:
            continue
        forward, backward = (
            at.get(((pair[ph]["pid"], pair[ph]["tid"]), nanoseconds(pair[ph]["ts"])), [])
            for ph in "sf"
        )
        for call in backward:
            same = [other for other in forward if other.seq == call.seq]
            if same:
                call.told_forward = same[-1]


def _kernel(
    event: dict[str, Any], calls: dict[int, dict[str, Any]], at: Instants, by_id: dict[int, Range]
) -> Kernel:
    args = event["args"]
    call = calls.get(args["correlation"])
    thread = launched = result = None
    if call is not None:
        thread, launched = (call["pid"], call["tid"]), nanoseconds(call["ts"])
        result = at.innermost(thread, launched)
    else:
        result = by_id.get(args.get("External id", args.get("external id")))
    return Kernel(
        start=nanoseconds(event["ts"]),
        duration=nanoseconds(event["dur"]),
        name=event["name"],
        device=args.get("device"),
        correlation=args["correlation"],
        thread=thread,
        launched=launched,
        range=result,
    )


def _autograd_threads(ranges: list[Range]) -> set[Any]:
    """Threads with node evaluations outside all other ranges: the engine's own."""
    return {
        range_.thread
        for range_ in ranges
        if range_.kind == "op" and is_node(range_.name) and not range_.parent
    }

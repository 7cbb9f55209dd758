"""A reference for the columns of a torch.profiler trace, with json.loads and dictionaries.

Rows are dicts of plain values, None for missing ones. `expected` makes them from the JSON text,
`found` from the columns read.
"""

import json
import re
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal, localcontext

import numpy as np

from fastprof._core._kineto import COLUMNS, NONE, TEXT_PLACE

KINDS = {"kernel": 0, "gpu_memcpy": 1, "memcpy": 1, "gpu_memset": 2, "memset": 2}
TABLE_OF_CATEGORY = (
    dict.fromkeys(KINDS, "gpu")
    | dict.fromkeys(("cuda_runtime", "cuda_driver", "runtime", "privateuse1_driver"), "launches")
    | dict.fromkeys(("cpu_op", "operator", "user_annotation", "python_function"), "ranges")
    | {"gpu_user_annotation": "gpu_annotations"}
)
COLLECTIVE = (
    *("Collective name", "dtype", "In msg nelems", "Out msg nelems", "Group size", "Rank"),
    *("In split size", "Out split size", "Process Group Name", "Src Rank", "Dst Rank"),
    *("Process Group Description", "Process Group Ranks"),
)
TRITON = (
    *("kernel_file", "kernel_hash", "kernel_backend", "kernel_name", "kernel_kwargs"),
    *("num_warps", "num_stages"),
)
ARGS = {
    "correlation": ("correlation",),
    "external_id": ("External id", "external id"),
    "context": ("context",),
    "stream": ("stream",),
    "graph_id": ("graph id",),
    "graph_node": ("graph node id",),
    "bytes": ("bytes", "Bytes"),
    "seq": ("Sequence number", "sequence number"),
    "forward_thread": ("Fwd thread id", "fwd thread id"),
    "record_function": ("Record function id",),
    "address": ("Addr",),
    "total_allocated": ("Total Allocated",),
    "total_reserved": ("Total Reserved",),
}
SMALL_ARGS = {
    "device": ("device",),
    "registers": ("registers per thread",),
    "shared_memory": ("shared memory",),
    "occupancy": ("est. achieved occupancy %",),
    "python_id": ("Python id",),
    "python_parent": ("Python parent id",),
    "python_module": ("Python module id",),
    "device_type": ("Device Type",),
    "message": ("Seq",),
}
# Args of GPU work that profilers write; with those of columns, not part of an annotation.
OF_PROFILERS = {
    *("queued", "blocks per SM", "warps per SM", "memory bandwidth (GB/s)", "kind", "priority"),
    *("stream priority", "cbid", "cluster", "channel id", "channel type", "launch type"),
    *("wait_on_stream", "wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_id"),
    *("occupancy", "cuda_sync_kind"),
}
OF_COLUMNS = {
    *(key for keys in (*ARGS.values(), *SMALL_ARGS.values()) for key in keys),
    *COLLECTIVE, *TRITON, "grid", "block", "kernel", "Call stack", "Call Stack", "Module Hierarchy",
    *("Device Id", "name", "labels", "sort_index", "Input Dims", "Input dims", "Input type"),
    *("Input Type", "Input Strides", "Concrete Inputs"),
}  # fmt: skip
MOST_OTHERS = 16
# Columns whose missing values are NONE.
SIGNED = {"start", "duration", "time", "pid", "tid", "id"}


class Number(str):
    """The text of a number."""


NUMBERS = {"parse_int": Number, "parse_float": Number, "parse_constant": Number}


def loads(text):
    return json.loads(text, strict=False, **NUMBERS)


def events(text):
    """The events of a trace; in early 2021 they were the root."""
    root = loads(text)
    return root if isinstance(root, list) else root["traceEvents"]


def first_events(text, n):
    """The text of a trace that ends after its nth event, and these events."""
    text = text.decode("utf-8", "surrogatepass")
    events, decode = [], json.JSONDecoder(strict=False, **NUMBERS).raw_decode
    opening = re.search(r'\A\s*\[|"traceEvents"\s*:\s*\[', text)
    at = end = opening.end()
    while len(events) < n and (at := re.compile(r"[\s,]*").match(text, at).end()) < len(text):
        if text[at] == "]":
            break
        event, at = decode(text, at)
        events.append(event)
        end = at
    closing = "]}" if "traceEvents" in opening.group() else "]"
    return (text[:end] + closing).encode("utf-8", "surrogatepass"), events


def integer(value, shift=0, bits=64):
    """A number, or a string with one, times 10^shift and rounded; None for other values."""
    if not isinstance(value, str):
        return None
    text = value.strip("".join(map(chr, range(33))))
    if not re.fullmatch(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", text):
        return None
    with localcontext() as context:
        context.prec = 2000
        number = Decimal(text).scaleb(shift)
        if abs(number) >= 2**bits:
            return None
        number = int(number.to_integral_value(ROUND_HALF_UP))
    return number if abs(number) < 2 ** (bits - 1) else None


def known(number):
    return None if number == -1 else number


def small(value):
    number = integer(value)
    return known(number) if number is not None and -(2**31) <= number < 2**31 else None


def triple(value):
    if isinstance(value, str) and value.startswith("["):
        try:
            value = loads(value)
        except ValueError:
            return None
    if not isinstance(value, list) or len(value) != 3:
        return None
    numbers = [small(item) if isinstance(item, Number) else None for item in value]
    return None if None in numbers else tuple(numbers)


def text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def place(value):
    if value is None or isinstance(value, dict | list):
        return None
    if not isinstance(value, bool) and re.fullmatch("[-0-9 ]*", value):
        number = integer(value)
        if number is not None and number > TEXT_PLACE:
            return number
    return text(value)


def first(mapping, keys):
    return next((mapping[key] for key in keys if mapping.get(key) is not None), None)


def label(event, args):
    pieces = [
        first(args, keys)
        for keys in (
            *(("Input Dims", "Input dims"), ("Input type",), ("Input Strides",)),
            ("Concrete Inputs",),
        )
    ]
    collective = {key: args[key] for key in COLLECTIVE if args.get(key) is not None}
    triton = {key: args[key] for key in TRITON if args.get(key) is not None}
    if triton and args.get("grid") is not None:
        triton["grid"] = args["grid"]
    return text(event.get("name")) or "", *pieces, collective or None, triton or None


def annotation(args):
    node = args.get("graph node id")
    if node is None or node in ("0", "-1"):
        return None
    others = [(key, value) for key, value in args.items() if key not in OF_COLUMNS][:MOST_OTHERS]
    pairs = {key: value for key, value in others if key not in OF_PROFILERS}
    known_ones = ("name", *COLLECTIVE)
    return pairs | {key: args[key] for key in known_ones if args.get(key) is not None} or None


def row_of(table, event):
    args = event.get("args")
    args = args if isinstance(args, dict) else {}
    row = {key: known(integer(first(args, ARGS[key]))) for key in COLUMNS[table] if key in ARGS}
    row |= {key: small(first(args, SMALL_ARGS[key])) for key in COLUMNS[table] if key in SMALL_ARGS}
    category = event.get("cat")
    values = {
        "kind": lambda: KINDS[category.lower()],
        "category": lambda: category,
        "start": lambda: integer(event.get("ts"), 3),
        "time": lambda: integer(event.get("ts"), 3),
        "duration": lambda: integer(event.get("dur"), 3),
        "name": lambda: text(event.get("name")),
        "label": lambda: label(event, args),
        "pid": lambda: place(event.get("pid")),
        "tid": lambda: place(event.get("tid")),
        "grid": lambda: triple(args.get("grid")),
        "block": lambda: triple(args.get("block")),
        "annotation": lambda: annotation(args),
        "stack": lambda: text(args.get("Call stack")),
        "hierarchy": lambda: text(args.get("Module Hierarchy")),
        "kernel": lambda: text(args.get("kernel")),
        "phase": lambda: ord(event["ph"]),
        "id": lambda: integer(event.get("id")),
        "value": lambda: text(first(args, ("name", "labels", "sort_index"))),
    }
    row |= {key: values[key]() for key in COLUMNS[table] if key in values}
    if table == "memory":
        row |= {
            "bytes": integer(first(args, ARGS["bytes"])),
            "device": small(args.get("Device Id")),
        }
    return row


def table_of(event):
    phase, category = event.get("ph"), event.get("cat")
    category = category.lower() if type(category) is str else None
    if phase == "X":
        return TABLE_OF_CATEGORY.get(category)
    if phase in ("s", "t", "f"):
        return "flows" if category == "fwdbwd" else None
    if phase in ("i", "I"):
        return "memory" if event.get("name") == "[memory]" else None
    return "metadata" if phase == "M" else None


def expected(events):
    """Rows by table, and counts, of events from `loads`."""
    rows = {table: [] for table in COLUMNS}
    counts = Counter()
    for event in events:
        phase, category = event.get("ph"), event.get("cat")
        is_letter = type(phase) is str and len(phase) == 1
        counts[phase if is_letter else None, category if type(category) is str else None] += 1
        table = table_of(event)
        if table:
            rows[table].append(row_of(table, event))
    return rows, dict(counts)


def split_label(joined):
    name, *pieces = joined.rsplit("\x1f", 6)
    values = [loads(piece) if piece else None for piece in pieces[:4]]
    return name, *values, *(loads(f"{{{piece}}}") if piece else None for piece in pieces[4:])


def pools_of(file):
    """The texts that a KinetoFile has numbers for, by column."""
    return {
        "name": file.names,
        "value": file.names,
        "kernel": file.names,
        "category": file.categories,
        "label": file.labels,
        "stack": file.stacks,
        "hierarchy": file.stacks,
        "annotation": file.notes,
    }


def plain_columns(file, lengths):
    """The first rows of each table, by column: numbers, and texts in the place of numbers of
    texts, to compare files of equal events with."""
    pools = {key: np.array([*pool, None], dtype=object) for key, pool in pools_of(file).items()}
    places = {}  # of threads and processes

    def plain(key, numbers):
        if key in pools:
            return pools[key][np.where(numbers < 0, -1, numbers)].tolist()
        if key in ("pid", "tid"):
            for number in set(numbers.tolist()) - set(places):
                places[number] = file.place(number)
            return [places[number] for number in numbers.tolist()]
        return numbers.tolist()

    return {
        (table, key): plain(key, column[: lengths[table]])
        for table, columns in file.tables.items()
        for key, column in columns.items()
    }


def found(file):
    """The same of a KinetoFile."""
    labels = [split_label(joined) for joined in file.labels]
    notes = [loads(f"{{{pairs}}}") for pairs in file.notes]
    pools = pools_of(file) | {"label": labels, "annotation": notes}

    def value_of(table, key, value):
        if key in pools:
            return pools[key][value] if value >= 0 else None
        if key in ("pid", "tid"):
            return file.place(value)
        if key in ("grid", "block"):
            return None if -1 in value else tuple(value)
        if key in SIGNED or (table, key) == ("memory", "bytes"):
            return None if value == NONE else value
        return known(value)

    rows = {}
    for table, columns in file.tables.items():
        lists = {
            key: [value_of(table, key, value) for value in column.tolist()]
            for key, column in columns.items()
        }
        rows[table] = [
            dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)
        ]
    return rows, file.counts

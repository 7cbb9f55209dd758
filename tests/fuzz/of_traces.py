"""Mutations of the events of a torch.profiler trace; the file stays valid JSON."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from fuzz.chance import INTEGERS, Chance

Events = list[Any]
_VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        "",
        "x",
        "-1",
        [],
        {},
        [None],
        {"a": None},
        [[[]]],
        -1,
        0,
        1.5,
        1e300,
        -1e300,
    ),
    *(
        float("nan"),
        float("inf"),
        1e-320,
        2**63,
        -(2**63) - 1,
        2**64,
        10**40,
        0.1 + 2**53,
        "é\0\ud800",
    ),
]
_IDS = (
    "correlation",
    "External id",
    "Sequence number",
    "Fwd thread id",
    "id",
    "pid",
    "tid",
    "device",
)
_IDS += ("stream", "graph node id", "Python id", "Python parent id", "Python module id", "Ev Idx")
_TIMES = ("ts", "dur")


def _kind(change: Callable[[Events, Chance], None]) -> Callable[[bytes, Chance], bytes]:
    """Turn a change of the events into a mutation of a file."""

    def mutate(content: bytes, chance: Chance) -> bytes:
        root = json.loads(content)
        change(root["traceEvents"] if isinstance(root, dict) else root, chance)
        return json.dumps(root).encode()

    return mutate


def _places(events: Events) -> Iterator[tuple[dict[str, Any], str]]:
    """The keys of all events and of their args."""
    for event in events:
        for holder in (event, event.get("args")):
            if isinstance(holder, dict):
                yield from ((holder, key) for key in holder)


def _some(events: Events, chance: Chance, keys: tuple[str, ...] = ()) -> list[tuple[Any, str]]:
    result = [(holder, key) for holder, key in _places(events) if not keys or key in keys]
    if not result:
        return []
    n = chance.choice([1, 1, 3, 30])
    return [result[chance.place(len(result))] for _ in range(n)]


def _value(events: Events, chance: Chance) -> None:
    for holder, key in _some(events, chance):
        holder[key] = chance.choice([*_VALUES, chance.choice(INTEGERS)])


def _key(events: Events, chance: Chance) -> None:
    """Delete or replace a key, or set it equal for all events."""
    some = _some(events, chance)
    other = chance.choice(["ts", "dur", "ph", "cat", "name", "args", "x", "", "correlation"])
    for holder, key in some:
        if key in holder:
            value = holder.pop(key)
            if chance.random() < 0.5:
                holder[other] = value


def _ids(events: Events, chance: Chance) -> None:
    """Ids that are missing, of another event, all equal, or far apart."""
    way = chance.choice(["one", "same", "far", "text", "shuffled"])
    some = _some(events, chance, (chance.choice(_IDS),))
    if not some:
        return
    key = some[0][1]
    everywhere = [place for place in _places(events) if place[1] == key]
    values = [holder[key] for holder, _ in everywhere]
    if way == "one":
        for holder, _ in some:
            holder[key] = chance.choice([*values, *INTEGERS, -5, "7", "a place"])
        return
    chance.shuffle(values)
    for i, (holder, _) in enumerate(everywhere):
        holder[key] = {"same": 1, "far": i * 10**14, "text": f"t{i}", "shuffled": values[i]}[way]


def _times(events: Events, chance: Chance) -> None:
    """Times that are negative, huge, decreasing, equal, or not numbers."""
    way = chance.choice(["one", "one", "same", "backwards", "huge", "negative", "long"])
    if way == "one":
        times = [*INTEGERS, -1, 0, 1e18, 9.3e15, 1e-9, "5", None, float("nan"), 2**63 / 1000]
        for holder, key in _some(events, chance, _TIMES):
            holder[key] = chance.choice(times)
        return
    by = chance.choice([10**12, 9_223_372_036_854_775, 10**17])
    for event in events:
        time = event.get("ts")
        if not isinstance(time, int | float):
            continue
        changes = {"same": 5, "backwards": -time, "huge": time + by, "negative": time - by}
        event["ts"] = changes.get(way, time)
        if way == "long":
            event["dur"] = by


def _events(events: Events, chance: Chance) -> None:
    """Delete, duplicate, reorder or replace events."""
    way = chance.choice(["lost", "twice", "shuffled", "many", "none"])
    part = chance.stretch(len(events), len(events))
    if way == "lost":
        del events[part]
    elif way == "twice":
        events[part] = events[part] * 2
    elif way == "shuffled":
        chance.shuffle(events)
    elif way == "many":
        events[part] = events[part][:3] * 200
    else:
        events[part] = [chance.choice([None, 1, "x", [], {}, [[]]]) for _ in events[part]]


def _arrows(events: Events, chance: Chance) -> None:
    """Flows between any events, cyclic, without an end or with several."""
    spans = [event for event in events if event.get("ph") == "X" and "ts" in event]
    for number in range(chance.choice([2, 20])):
        for phase in chance.choice(["sf", "fs", "s", "f", "sff", "stf"]):
            at = chance.choice(spans) if spans else {"ts": 1}
            place = {key: at.get(key) for key in ("pid", "tid", "ts")}
            cat = chance.choice(["fwdbwd", "fwdbwd", "ac2g"])
            events.append({"ph": phase, "id": number % 7, "cat": cat, "name": cat, **place})


KINDS = {
    "event-value": _kind(_value),
    "event-key": _kind(_key),
    "event-ids": _kind(_ids),
    "event-times": _kind(_times),
    "events": _kind(_events),
    "arrows": _kind(_arrows),
}

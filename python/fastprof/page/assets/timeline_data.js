/* Time lines of a page: decoding, lanes, search and texts of events. The arrays are those of
 * page/timeline_arrays.py. */
"use strict";

const timelineData = (() => {
  /** Numbers of byte planes: all lowest bytes first. */
  function numbers(planes, n) {
    const found = new Float64Array(n);
    for (let offset = 0, scale = 1; offset < planes.length; offset += n, scale *= 256) {
      for (let i = 0; i < n; i++) found[i] += planes[offset + i] * scale;
    }
    return found;
  }

  /** Start, end and the latest end so far of each event, ns in the window, lane by lane. */
  function times(lanes, delta, length) {
    const n = length.length;
    const found = { start: new Float64Array(n), end: new Float64Array(n), until: new Float64Array(n) };
    let i = 0;
    for (const lane of lanes) {
      let start = lane.origin;
      let until = -Infinity;
      for (const last = i + lane.events; i < last; i++) {
        start += delta[i];
        found.start[i] = start;
        found.end[i] = start + length[i];
        until = Math.max(until, found.end[i]);
        found.until[i] = until;
      }
    }
    return found;
  }

  /** The first index in [low, high) whose value is above a limit, else high. */
  function above(values, limit, low, high) {
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] > limit) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** One time line: events in typed arrays, lanes with the range [first, last) of their events. */
  class TimeLine {
    constructor(data, arrays, index) {
      const choice = data.choices[index];
      Object.assign(this, { title: choice.title, length: choice.length, gpu: choice.gpu });
      Object.assign(this, { pixel: choice.pixel, recorded: choice.recorded });
      const n = data.lanes[index].reduce((sum, lane) => sum + lane.events, 0);
      const column = (name) => numbers(arrays[`${index}.${name}`], n);
      Object.assign(this, times(data.lanes[index], column("start"), column("length")));
      this.what = Int32Array.from(column("what"));
      this.link = Int32Array.from(column("link"), (each) => each - 1);
      this.forward = Int32Array.from(column("forward"), (each) => each - 1);
      this.count = choice.pixel ? column("count") : null;
      this.free = choice.pixel ? column("free") : null;
      this.names = namesOf(data, arrays);
      let first = 0;
      this.lanes = data.lanes[index].map((lane) => {
        const made = { ...lane, first, last: first + lane.events, names: this.names[lane.kind] };
        first = made.last;
        return made;
      });
      this.laneOf = new Uint16Array(n);
      this.lanes.forEach((lane, i) => this.laneOf.fill(i, lane.first, lane.last));
      /* What a view may show: the window, and launches and work that cross its limits. */
      this.bounds = [0, this.length];
      for (const lane of this.lanes) {
        if (lane.first === lane.last || !["work", "calls"].includes(lane.kind)) continue;
        this.bounds[0] = Math.min(this.bounds[0], this.start[lane.first]);
        this.bounds[1] = Math.max(this.bounds[1], this.until[lane.last - 1]);
      }
    }

    /** Events of a lane that overlap [from, to]: the range of their indices. */
    between(lane, from, to) {
      return [
        above(this.until, from, lane.first, lane.last),
        above(this.start, to, lane.first, lane.last),
      ];
    }

    /** The event of a lane at a time: the last to start of those that are open, else the nearest
     * within a distance, else -1. */
    at(lane, time, distance) {
      const [first, last] = this.between(lane, time - distance, time + distance);
      let found = -1;
      let nearest = Infinity;
      for (let i = first; i < last; i++) {
        const away = Math.max(this.start[i] - time, time - this.end[i], 0);
        if (away <= nearest && away <= distance) [found, nearest] = [i, away];
      }
      return found;
    }

    /** The value of a column of the names of an event, "" if unknown. */
    name(i, column) {
      const { names } = this.lanes[this.laneOf[i]];
      const place = names.columns[column]?.[this.what[i]] ?? -1;
      return place < 0 ? "" : this.names.texts[place];
    }

    titleOf(i) {
      return this.name(i, "kernel") || this.name(i, "name") || "no name";
    }

    /** What one event is linked with: [role, event] each. */
    links(i) {
      const lane = this.lanes[this.laneOf[i]];
      const found = [];
      if (this.link[i] >= 0) found.push([lane.kind === "idle" ? "next" : "launch", this.link[i]]);
      if (this.forward[i] >= 0) found.push(["forward", this.forward[i]]);
      if (lane.kind === "calls") found.push(...this.inverse("link", i).map((each) => ["launches", each]));
      if (lane.kind === "work") found.push(...this.inverse("forward", i).map((each) => ["backward", each]));
      return found;
    }

    /** Work whose link (or forward) is an event; at most eight. */
    inverse(column, i) {
      const found = [];
      for (const lane of this.lanes) {
        if (lane.kind !== "work") continue;
        for (let j = lane.first; j < lane.last && found.length < 8; j++) {
          if (this[column][j] === i) found.push(j);
        }
      }
      return found;
    }

    /** Events whose name, operator, layer, shapes or line, or whose cause of idle time, contain
     * all words, in order of time. */
    search(text) {
      const words = text.toLowerCase().split(/\s+/).filter(Boolean);
      if (!words.length) return [];
      const texts = this.names.texts.map((each) => each.toLowerCase());
      const fits = words.map((word) => texts.map((each) => each.includes(word)));
      const found = [];
      for (const lane of this.lanes) {
        const columns = Object.entries(lane.names.columns)
          .filter(([name]) => name !== "kind" || lane.kind === "idle").map(([, column]) => column);
        const matches = Array.from({ length: lane.names.n }, (_, what) => fits.every((fit) =>
          columns.some((column) => column[what] >= 0 && fit[column[what]])));
        for (let i = lane.first; i < lane.last; i++) if (matches[this.what[i]]) found.push(i);
      }
      return found.sort((a, b) => this.start[a] - this.start[b]);
    }
  }

  function namesOf(data, arrays) {
    const names = { texts: data.texts };
    for (const [kind, columns] of Object.entries(data.columns)) {
      const found = {};
      for (const column of columns) {
        if (arrays[`${kind}.${column}`]) found[column] = arrays[`${kind}.${column}`];
      }
      names[kind] = { columns: found, n: Object.values(found)[0]?.length ?? 0 };
    }
    return names;
  }

  /** The title of a lane; parts that all lanes share are left out. */
  function laneTitle(line, lane, threads) {
    if (lane.kind === "idle") return `GPU ${lane.device}`;
    const several = new Set(line.lanes.filter((each) => each.pid >= 0).map((each) => each.pid)).size > 1;
    const process = several && lane.pid >= 0 ? ` · process ${lane.pid}` : "";
    if (lane.kind === "work") return `GPU ${lane.device} · stream ${lane.stream}${process}`;
    const named = threads.find(([pid, tid]) => pid === lane.pid && tid === lane.tid);
    return `${named ? `${named[2]} (${lane.tid})` : `thread ${lane.tid}`}${process}`;
  }

  return { TimeLine, above, laneTitle, numbers };
})();

/* The time line of ranks: decoding and search. The arrays are those of page/run/lane_arrays.py. */
"use strict";

const lanesData = (() => {
  const { above, numbers } = timelineData;

  /** Columns of events by name, with start, end and the latest end so far, lane by lane. */
  function columns(arrays, group, lanes, names) {
    const n = lanes.reduce((sum, lane) => sum + lane.events, 0);
    const found = { n };
    for (const name of names) {
      found[name] = n ? numbers(arrays[`${group}.${name}`], n) : new Float64Array(0);
    }
    found.end = new Float64Array(n);
    found.until = new Float64Array(n);
    let i = 0;
    for (const lane of lanes) {
      let [start, until] = [0, 0];
      lane.first = i;
      for (lane.last = i + lane.events; i < lane.last; i++) {
        start += found.start[i];
        found.start[i] = start;
        found.end[i] = start + found.length[i];
        until = Math.max(until, found.end[i]);
        found.until[i] = until;
      }
    }
    return found;
  }

  /** Ranks, their lanes (channel -1: the chain), slices, calls and instances. */
  class Run {
    constructor(data, arrays) {
      Object.assign(this, { data, texts: data.texts, kinds: data.kinds, steps: data.steps });
      const chains = data.lanes.filter((lane) => lane.channel < 0);
      const streams = data.lanes.filter((lane) => lane.channel >= 0);
      this.pieces = columns(arrays, "piece", chains, ["start", "length", "kind", "text", "count", "instance"]);
      this.calls = columns(arrays, "call", streams, ["start", "length", "wait", "signature", "instance"]);
      this.instances = {};
      for (const name of ["at", "late", "last", "transfer", "ranks", "missing", "signature"]) {
        const packed = arrays[`instance.${name}`];
        this.instances[name] = data.n[0] ? numbers(packed, data.n[0]) : new Float64Array(0);
      }
      this.ranks = chains.map((chain) => ({
        number: data.ranks[chain.rank], chain, streams: streams.filter((lane) => lane.rank === chain.rank),
      }));
      this.end = Math.max(1, ...[this.pieces, this.calls].flatMap(({ until }) =>
        data.lanes.filter((lane) => lane.events).map((lane) => until[lane.last - 1] || 0)));
      this.members = null;
    }

    eventsOf = (lane) => (lane.channel < 0 ? this.pieces : this.calls);

    /** Events of a lane that overlap [from, to]: the range of their indices. */
    between(lane, from, to) {
      const events = this.eventsOf(lane);
      return [above(events.until, from, lane.first, lane.last), above(events.start, to, lane.first, lane.last)];
    }

    /** The event of a lane at a time, or the nearest within a distance, else -1. */
    at(lane, time, distance) {
      const events = this.eventsOf(lane);
      const [first, last] = this.between(lane, time - distance, time + distance);
      let [found, nearest] = [-1, Infinity];
      for (let i = first; i < last; i++) {
        const away = Math.max(events.start[i] - time, time - events.end[i], 0);
        if (away <= nearest && away <= distance) [found, nearest] = [i, away];
      }
      return found;
    }

    /** The calls of an instance: [place of the rank, lane, call] each, in order of rank. */
    callsOf(instance) {
      if (this.members === null) {
        this.members = new Map();
        this.ranks.forEach(({ streams }, place) => streams.forEach((lane) => {
          for (let i = lane.first; i < lane.last; i++) {
            const number = this.calls.instance[i];
            if (!number) continue;
            if (!this.members.has(number)) this.members.set(number, []);
            this.members.get(number).push([place, lane, i]);
          }
        }));
      }
      return this.members.get(instance) || [];
    }

    /** Title and place of a signature. */
    signature(i) {
      return this.data.signatures[i].map((text) => this.texts[text]);
    }

    /** Lines of text about an instance. */
    instanceLines(instance, time) {
      const of = (name) => this.instances[name][instance - 1];
      const [title, about] = this.signature(of("signature"));
      const found = [title];
      if (of("ranks") > 1) {
        found.push(`rank ${of("last") - 1} comes last, ${time(of("late"))} after the first; `
          + `then ${time(of("transfer"))} of transfer`);
      } else {
        found.push(`transfer ${time(of("transfer"))}; no other rank of it has a file`);
      }
      const missing = of("missing") ? `, ${of("missing")} without a call` : "";
      found.push([`${of("ranks")} ranks${missing}`, about].filter(Boolean).join(" · "));
      return found;
    }
  }

  return { Run };
})();

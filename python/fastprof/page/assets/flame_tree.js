/* The tree of an icicle: measures of each node with all inside it, places, search. */
"use strict";

const flameTree = (() => {
  const DIRECTIONS = ["forward", "backward", "other"];
  const N = DIRECTIONS.length;
  const EVALUATE = /^autograd::engine::evaluate_function: /;

  /* How the time of a part changed: the least share of each, slower first. */
  const CHANGES = ["much slower", "slower", "about equal", "faster", "much faster", "new", "gone"];
  const MUCH = 0.25;
  const EQUAL = 0.03;

  const MEASURES = ["before_ns", "after_ns", "ns", "step_ns", "lost_ns", "flops", "bytes", "kernels", "calls"];
  const MOST = 50000; // nodes of an inverse tree

  /** A node is its row; row 0 is all. Parents precede their children. */
  class Tree {
    /** array(name): an array of the tree, or undefined. */
    constructor(view, array) {
      Object.assign(this, { title: view.title, view, parent: array("parent"), array });
      this.turned = null;
      /* The measure of the widths at first. */
      this.main = this.has("ns") ? "ns" : "after_ns";
      this.n = this.parent.length;
      this.known = new Map();
      this.setChildren();
    }

    /** The children of node i are children[starts[i]] to children[starts[i + 1] - 1]. */
    setChildren() {
      const { parent, n } = this;
      this.starts = new Int32Array(n + 1);
      this.level = new Int32Array(n);
      for (let i = 1; i < n; i++) {
        this.starts[parent[i] + 1]++;
        this.level[i] = this.level[parent[i]] + 1;
      }
      for (let i = 0; i < n; i++) this.starts[i + 1] += this.starts[i];
      const next = this.starts.slice(0, n);
      this.children = new Int32Array(Math.max(n - 1, 0));
      for (let i = 1; i < n; i++) this.children[next[parent[i]]++] = i;
      this.depth = this.level.reduce((most, each) => Math.max(most, each), 0);
    }

    name(node) {
      return this.view.names[this.array("name")[node]];
    }

    type(node) {
      return this.view.types[this.array("type")[node]];
    }

    /** Ids into CHANGES of the change of each node with all inside it. */
    changes() {
      const [before, after] = ["before_ns", "after_ns"].map((name) => this.inside(name, null));
      const least = 0.001 * Math.max(before[0], after[0]); // smaller changes are equal
      return Int32Array.from(before, (was, i) => {
        const is = after[i] || 0;
        const more = is - (was || 0);
        if (Math.abs(more) < least) return 2;
        if (!(was > 0)) return 5;
        if (!(is > 0)) return 6;
        const share = more / was;
        if (Math.abs(share) < EQUAL) return 2;
        return share > 0 ? (share > MUCH ? 0 : 1) : (share < -MUCH ? 4 : 3);
      });
    }

    /** The phase or kind with at least half of the time of a node, or its change; null for none. */
    group(name, node) {
      if (name === "change") return null;
      const id = this.array(name)[node];
      return id < 0 ? null : this.view[`${name}s`][id];
    }

    has(measure) {
      return this.array(measure) !== undefined;
    }

    /** A short name. That of a frame has no folder, and the function first: `forward net.py:12`. */
    label(node) {
      const name = this.name(node).replace(EVALUATE, "");
      if (this.type(node) !== "frame") return name;
      const found = /^(?:.*[\\/])?([^\\/]+:\d+)(?: (.*))?$/s.exec(name);
      return found ? [found[2], found[1]].filter(Boolean).join("  ") : name;
    }

    chain(node) {
      const found = [];
      for (let i = node; i >= 0; i = this.parent[i]) found.unshift(i);
      return found;
    }

    /** A measure of each node with all nodes inside it, [n]; NaN: unknown. direction: null for all
     * of DIRECTIONS. */
    inside(measure, direction) {
      const key = `${measure} ${direction}`;
      if (!this.known.has(key)) this.known.set(key, this.sums(measure, direction));
      return this.known.get(key);
    }

    sums(measure, direction) {
      const { n, parent } = this;
      const [at, values] = [this.array("at"), this.array(measure)];
      const [sums, isKnown] = [new Float64Array(n), new Uint8Array(n)];
      const wanted = DIRECTIONS.indexOf(direction);
      for (let i = 0; i < at.length; i++) {
        const isOther = wanted >= 0 && at[i] % N !== wanted;
        if (isOther || Number.isNaN(values[i])) continue;
        const node = Math.floor(at[i] / N);
        sums[node] += values[i];
        isKnown[node] = 1;
      }
      for (let i = n - 1; i > 0; i--) {
        sums[parent[i]] += sums[i];
        isKnown[parent[i]] |= isKnown[i];
      }
      return sums.map((sum, i) => (isKnown[i] ? sum : NaN));
    }

    /** The tree from inside to outside: below all, the kernels; below each, what called it. */
    inverse() {
      if (this.turned === null) this.turned = inverseOf(this);
      return this.turned;
    }

    /** A measure of a node; NaN: unknown. */
    value(measure, node, direction = null) {
      return this.has(measure) ? this.inside(measure, direction)[node] : NaN;
    }

    /** The place of each node from 0 to the width of the root, [n]: { left, right }.
     * Children that exceed their parent by more than rounding are scaled to it. */
    places(measure, direction) {
      const { n } = this;
      const width = this.inside(measure, direction).map((value) => Math.max(value || 0, 0));
      const total = new Float64Array(n);
      for (let i = 1; i < n; i++) total[this.parent[i]] += width[i];
      const [left, right, cursor] = [new Float64Array(n), new Float64Array(n), new Float64Array(n)];
      right[0] = width[0];
      for (let i = 1; i < n; i++) {
        const above = this.parent[i];
        const room = right[above] - left[above];
        // Rounding of sums is no reason to scale.
        const scale = total[above] > room * (1 + 1e-9) ? room / total[above] : 1;
        left[i] = cursor[i] = cursor[above];
        right[i] = cursor[above] = left[i] + width[i] * scale;
      }
      return { left, right };
    }

    /** Nodes whose name contains all words: { is: [n], outermost: [nodes], count }. */
    search(text) {
      const words = text.toLowerCase().split(/\s+/).filter(Boolean);
      if (!words.length) return null;
      const fits = this.view.names.map((name) => {
        const lower = name.toLowerCase();
        return words.every((word) => lower.includes(word));
      });
      const [is, inside] = [new Uint8Array(this.n), new Uint8Array(this.n)];
      const outermost = [];
      let count = 0;
      const names = this.array("name");
      for (let i = 1; i < this.n; i++) {
        const above = inside[this.parent[i]];
        is[i] = fits[names[i]] ? 1 : 0;
        inside[i] = above | is[i];
        count += is[i];
        if (is[i] && !above) outermost.push(i);
      }
      return { is, outermost, count };
    }
  }

  /** Each row with measures of its own becomes a path from its name to the outermost. */
  function inverseOf(tree) {
    const at = tree.array("at");
    const own = tree.inside(tree.main, null);
    const order = Int32Array.from(at.keys()).sort((a, b) =>
      (own[Math.floor(at[b] / N)] || 0) - (own[Math.floor(at[a] / N)] || 0));
    const [names, types] = ["name", "type"].map((name) => tree.array(name));
    const made = { parent: [-1], name: [names[0]], type: [types[0]] };
    const places = new Map();
    const ends = new Int32Array(at.length);
    for (const k of order) {
      let node = 0;
      for (let i = Math.floor(at[k] / N); i > 0; i = tree.parent[i]) {
        const key = `${node} ${names[i]} ${types[i]}`;
        let next = places.get(key);
        if (next === undefined) {
          if (made.parent.length >= MOST) break;
          next = made.parent.length;
          places.set(key, next);
          made.parent.push(node);
          made.name.push(names[i]);
          made.type.push(types[i]);
        }
        node = next;
      }
      ends[k] = node;
    }
    const arrays = {};
    for (const [name, values] of Object.entries(made)) arrays[name] = Int32Array.from(values);
    arrays.at = at.map((each, k) => ends[k] * N + (each % N));
    for (const name of MEASURES) if (tree.has(name)) arrays[name] = tree.array(name);
    for (const group of ["phase", "kind"]) arrays[group] = mostly(tree, arrays, ends, group);
    return new Tree(tree.view, (name) => arrays[name]);
  }

  /** The group with at least half of the time of each node, -1 for none. */
  function mostly(tree, arrays, ends, group) {
    const [parent, ns] = [arrays.parent, arrays[tree.main]];
    const n = tree.view[`${group}s`].length;
    const [ids, at] = [tree.array(group), tree.array("at")];
    const sums = new Float64Array(parent.length * n);
    const all = new Float64Array(parent.length);
    ends.forEach((node, k) => {
      const id = ids[Math.floor(at[k] / N)];
      all[node] += ns[k];
      if (id >= 0) sums[node * n + id] += ns[k];
    });
    for (let i = parent.length - 1; i > 0; i--) {
      all[parent[i]] += all[i];
      for (let id = 0; id < n; id++) sums[parent[i] * n + id] += sums[i * n + id];
    }
    return Int32Array.from(all, (time, i) => {
      for (let id = 0; id < n; id++) if (time > 0 && sums[i * n + id] >= time / 2) return id;
      return -1;
    });
  }

  /** The node of a row at a place; -1 for none. */
  function nodeAt(tree, places, row, place) {
    let node = 0;
    for (let level = 0; level < row && node >= 0; level++) node = childAt(tree, places, node, place);
    return node;
  }

  function childAt(tree, { left, right }, node, place) {
    const end = tree.starts[node + 1];
    const at = firstAfter(tree, right, node, place);
    return at < end && left[tree.children[at]] <= place ? tree.children[at] : -1;
  }

  /** The index of the first child that ends after a place. */
  function firstAfter(tree, right, node, place) {
    let [low, high] = [tree.starts[node], tree.starts[node + 1]];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (right[tree.children[middle]] > place) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  return { Tree, CHANGES, DIRECTIONS, firstAfter, nodeAt };
})();

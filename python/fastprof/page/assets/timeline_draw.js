/* Draws a time line on a canvas. Heights and widths are CSS pixels, times ns. */
"use strict";

const timelineDraw = (() => {
  const HEIGHT = { idle: 14, work: 22, ranges: 16, calls: 14, system: 12 };
  const AXIS = 22;
  const HEADER = 20;
  const LABEL = 14;
  const THIN = 4;
  const GAP = 6;
  const LEVELS = 8; // of opacity
  const CHARACTER = 6.1; // width of the font

  const LABELS = { idle: "busy / idle", calls: "API calls", system: "OS" };

  /** The rows of a time line: lanes with their place, and a header above each GPU and thread.
   * Without a gutter, the name of a lane is above it. */
  function layout(line, threads, hasGutter) {
    const rows = [];
    let y = 0;
    let group = null;
    for (const lane of line.lanes) {
      const own = lane.device >= 0 ? `gpu ${lane.device}` : `${lane.pid} ${lane.tid}`;
      if (own !== group) {
        y += group === null ? 0 : GAP;
        const title = lane.device >= 0 ? `GPU ${lane.device}` : timelineData.laneTitle(line, lane, threads);
        rows.push({ header: title, y, height: HEADER });
        y += HEADER;
        group = own;
      }
      let label = lane.kind === "work" ? `stream ${lane.stream}` : LABELS[lane.kind] || "";
      if (lane.kind === "ranges" && lane.level === 0 && hasGutter) label = "ranges";
      const above = label && !hasGutter && lane.kind !== "idle" ? LABEL : 0;
      y += above;
      const height = isWrapper(line, lane) ? THIN : HEIGHT[lane.kind];
      rows.push({ lane, label: height === THIN ? "" : label, above, y, height });
      y += height + (lane.kind === "ranges" ? 1 : 2);
    }
    return { rows, height: y + GAP, rowOf: new Map(rows.filter((row) => row.lane).map((row) => [row.lane, row])) };
  }

  /** Whether a lane is one Python function around all of the time line, such as main. */
  function isWrapper(line, lane) {
    const i = lane.first;
    return lane.kind === "ranges" && lane.last - i === 1 && line.name(i, "kind") === "Python"
      && line.start[i] <= 0 && line.end[i] >= line.length;
  }

  /** Ticks at 1, 2 or 5 times a power of ten ns, some 110 pixels apart: [time, text]. */
  function ticks(from, to, width) {
    const rough = ((to - from) / Math.max(width, 1)) * 110;
    const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
    const largest = Math.max(Math.abs(from), Math.abs(to));
    const [size, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(([each]) => largest >= each || each === 1);
    const decimals = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
    const found = [];
    for (let i = Math.ceil(from / step); i * step <= to; i++) {
      found.push([i * step, `${((i * step) / size).toFixed(decimals)} ${unit}`]);
    }
    return found;
  }

  /** Colours of the current theme, read once. */
  class Colors {
    constructor(line, colors) {
      for (const name of ["text", "muted", "line", "surface", "raised", "accent", "line-strong", "page"]) {
        this[name] = colors.get(name);
      }
      this.busy = colors.of("busy", "compute");
      this.of = {};
      for (const [kind, names] of Object.entries(line.names)) {
        if (kind === "texts") continue;
        const column = names.columns.kind || [];
        const known = new Map();
        this.of[kind] = Array.from({ length: names.n }, (_, what) => {
          const name = column[what] >= 0 ? line.names.texts[column[what]] : "other";
          if (!known.has(name)) known.set(name, { name, color: colorOf(colors, kind, name) });
          return known.get(name);
        });
      }
      this.ink = new Map();
    }

    /** Black or white, whichever can be read on a colour. */
    on(color) {
      if (!this.ink.has(color)) this.ink.set(color, luminance(color) > 0.3 ? "#101214" : "#ffffff");
      return this.ink.get(color);
    }
  }

  function luminance(color) {
    const parts = /^#(..)(..)(..)/.exec(color);
    if (parts === null) return 1;
    const [r, g, b] = parts.slice(1).map((each) => (parseInt(each, 16) / 255) ** 2.2);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  const GROUPS = { idle: "cause", work: "kind", ranges: "range", calls: "call", system: "system" };

  function colorOf(colors, kind, name) {
    return colors.of(GROUPS[kind], name) || colors.get("muted");
  }

  /** Events narrower than a pixel, added up by pixel; drawn as opaque as the time they cover, idle
   * time as high: below busy time, with which it would mix to another colour. */
  class Column {
    constructor(context, y, height, nsOfPixel, isIdle) {
      Object.assign(this, { context, y, height, nsOfPixel, isIdle, x: -1, ns: new Map() });
    }

    add(x, color, ns) {
      if (x !== this.x) this.flush(x);
      this.ns.set(color, (this.ns.get(color) || 0) + ns);
    }

    flush(x) {
      if (this.ns.size) {
        let [main, most, sum] = ["", -1, 0];
        for (const [color, ns] of this.ns) {
          sum += ns;
          if (ns > most) [main, most] = [color, ns];
        }
        const covered = Math.min(1, sum / this.nsOfPixel);
        this.context.fillStyle = main;
        if (this.isIdle) {
          const high = Math.max(1, covered * this.height);
          this.context.fillRect(this.x, this.y + this.height - high, 1, high);
        } else {
          this.context.globalAlpha = 0.3 + 0.7 * (Math.ceil(covered * LEVELS) / LEVELS);
          this.context.fillRect(this.x, this.y, 1, this.height);
          this.context.globalAlpha = 1;
        }
        this.ns.clear();
      }
      this.x = x;
    }
  }

  /** The axis of time: its ticks, and where a time is. */
  class Axes {
    /** view: { from, to, in ns; left, width, height, in CSS pixels } and what the drawing needs */
    constructor(context, colors, view) {
      Object.assign(this, { context, colors, ...view });
      this.scale = (this.width - this.left) / (this.to - this.from);
    }

    x(time) {
      return this.left + (time - this.from) * this.scale;
    }

    grid() {
      this.context.fillStyle = this.colors.line;
      this.ticks = ticks(this.from, this.to, this.width - this.left);
      for (const [time] of this.ticks) this.context.fillRect(Math.round(this.x(time)), AXIS, 1, this.height);
    }

    axis() {
      const { context, colors } = this;
      context.fillStyle = colors.surface;
      context.fillRect(0, 0, this.width, AXIS);
      context.fillStyle = colors.line;
      context.fillRect(0, AXIS - 1, this.width, 1);
      context.fillStyle = colors.muted;
      context.textAlign = "left";
      for (const [time, text] of this.ticks) {
        const x = Math.round(this.x(time));
        if (x < this.left || x + text.length * CHARACTER > this.width) continue;
        context.fillRect(x, AXIS - 6, 1, 5);
        context.fillText(text, x + 4, AXIS / 2);
      }
    }
  }

  class Drawing extends Axes {
    // view: { line, rows, from, to, left, width, height, scroll, matches (Uint8Array or null) }

    all() {
      const { context, colors } = this;
      context.fillStyle = colors.surface;
      context.fillRect(0, 0, this.width, this.height);
      this.step();
      this.grid();
      context.save();
      context.beginPath();
      context.rect(0, AXIS, this.width, this.height - AXIS);
      context.clip();
      for (const row of this.rows) {
        const y = row.y + AXIS - this.scroll;
        if (y > this.height || y + row.height < AXIS) continue;
        if (row.header) this.header(row, y);
        else this.lane(row.lane, y, row.height);
      }
      this.labels();
      context.restore();
      this.axis();
    }

    /** What is outside of the step on the GPU has a darker ground. */
    step() {
      const [begin, end] = this.line.gpu.map((time) => this.x(time));
      this.context.fillStyle = this.colors.raised;
      if (begin > this.left) this.context.fillRect(this.left, AXIS, begin - this.left, this.height);
      if (end < this.width) this.context.fillRect(Math.max(end, this.left), AXIS, this.width - end, this.height);
    }

    header(row, y) {
      this.context.fillStyle = this.colors.muted;
      this.context.font = `600 ${FONT}`;
      this.context.fillText(row.header, 6, y + row.height / 2 + 1);
      this.context.font = FONT;
    }

    /** The names of lanes: in the gutter, else above the lane. */
    labels() {
      const { context, colors } = this;
      for (const row of this.rows) {
        const y = row.y + AXIS - this.scroll;
        if (row.header || y - LABEL > this.height || y + row.height < AXIS) continue;
        context.fillStyle = colors.surface;
        if (this.left) context.fillRect(0, y - 1, this.left - 2, row.height + 2);
        context.fillStyle = colors.muted;
        if (this.left) context.fillText(row.label, 14, y + row.height / 2 + 1);
        else if (row.above) context.fillText(row.label, 6, y - LABEL / 2 + 1);
      }
    }

    lane(lane, y, height) {
      const { context, line } = this;
      context.save();
      context.beginPath();
      context.rect(this.left, y - 1, this.width - this.left, height + 2);
      context.clip();
      if (lane.kind === "idle") this.busy(lane, y, height);
      const [first, last] = line.between(lane, this.from, this.to);
      const colors = this.colors.of[lane.kind];
      const column = new Column(context, y, height, 1 / this.scale, lane.kind === "idle");
      for (let i = first; i < last; i++) {
        const x = this.x(line.start[i]);
        const width = (line.end[i] - line.start[i]) * this.scale;
        const { color } = colors[line.what[i]];
        const shown = this.matches === null || this.matches[i] ? color : this.colors.line;
        if (width < 1.5) {
          const ns = line.end[i] - line.start[i] - (line.free ? line.free[i] : 0);
          column.add(Math.floor(x), shown, ns);
        } else {
          column.flush(-1);
          this.box(i, x, y, width, height, shown, lane.kind === "idle");
        }
      }
      column.flush(-1);
      context.restore();
    }

    /** A GPU is busy from the first to the last work wherever no gap is drawn. */
    busy(lane, y, height) {
      let [begin, end] = [Infinity, -Infinity];
      for (const other of this.line.lanes) {
        if (other.device !== lane.device || other.first === other.last) continue;
        begin = Math.min(begin, this.line.start[other.first]);
        end = Math.max(end, this.line.until[other.last - 1]);
      }
      const x = Math.max(this.x(begin), this.left);
      this.context.fillStyle = this.matches === null ? this.colors.busy : this.colors.line;
      this.context.fillRect(x, y, Math.min(this.x(end), this.width) - x, height);
    }

    box(i, left, y, length, height, color, isIdle) {
      const { context, line } = this;
      const x = Math.max(left, this.left - 2);
      const width = Math.min(left + length, this.width + 2) - x;
      const n = line.count ? line.count[i] : 1;
      const covered = n > 1 ? 1 - line.free[i] / Math.max(line.end[i] - line.start[i], 1) : 1;
      const high = isIdle ? covered * height : height;
      context.globalAlpha = isIdle || n === 1 ? 1 : 0.3 + 0.7 * covered;
      context.fillStyle = color;
      context.fillRect(x, y + height - high, width > 3 && !isIdle ? width - 0.75 : width, high);
      context.globalAlpha = 1;
      if (isIdle && covered < 1) return;
      if (width < 30 || height < 12) return;
      const title = n > 1 ? `${n} × ${line.titleOf(i)}` : line.titleOf(i);
      const room = Math.floor((width - 8) / CHARACTER);
      const text = title.length <= room || room > 3 ? fastprof.cut(title, room) : "";
      if (!text) return;
      context.fillStyle = this.colors.on(color);
      context.fillText(text, x + 4, y + height / 2 + 1);
    }
  }

  const FONT = "11px system-ui, sans-serif";

  /** A canvas of some size in CSS pixels, sharp on the device; its context. */
  function prepare(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.textBaseline = "middle";
    return context;
  }

  /** The first lane of the first GPU, or of the first thread, over all of the time line, with the
   * view marked on it. view: as of a Drawing */
  function overview(canvas, colors, view) {
    const { line, width, height } = view;
    const context = prepare(canvas, width, height);
    const lane = line.lanes.find((each) => each.kind === "idle") || line.lanes[0];
    context.fillStyle = colors.surface;
    context.fillRect(0, 0, width, height);
    new Drawing(context, colors, { ...view, from: 0, to: line.length, left: 0 }).lane(lane, 6, height - 12);
    const [begin, end] = [view.from, view.to].map((time) => (time / line.length) * width);
    context.globalAlpha = 0.6;
    context.fillStyle = colors.page;
    context.fillRect(0, 0, begin, height);
    context.fillRect(end, 0, width - end, height);
    context.globalAlpha = 1;
    context.strokeStyle = colors.accent;
    context.lineWidth = 2;
    context.strokeRect(begin + 1, 1, Math.max(end - begin - 2, 2), height - 2);
  }

  return { AXIS, Axes, Colors, Drawing, layout, luminance, overview, prepare, ticks };
})();

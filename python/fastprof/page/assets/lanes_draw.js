/* Draws the time line of ranks on a canvas. Heights and widths are CSS pixels, times ns. */
"use strict";

const lanesDraw = (() => {
  const { AXIS, Axes, luminance } = timelineDraw;
  const CHAIN = 20;
  const STREAM = 15;
  const GAP = 5;
  const CHARACTER = 6.1;

  /** The rows of the chart: for each rank its chain and, if it is open, its streams. */
  function layout(run, open) {
    const rows = [];
    let y = 2;
    run.ranks.forEach((rank, place) => {
      rows.push({ lane: rank.chain, place, y, height: CHAIN });
      y += CHAIN + 2;
      if (open.has(place)) {
        for (const lane of rank.streams) {
          rows.push({ lane, place, y, height: STREAM });
          y += STREAM + 2;
        }
      }
      y += rank.streams.length && open.has(place) ? GAP : 1;
    });
    return { rows, height: y + GAP, of: new Map(rows.map((row) => [row.lane, row])) };
  }

  class Colors {
    constructor(run, colors) {
      for (const name of ["text", "muted", "line", "surface", "raised"]) this[name] = colors.get(name);
      this.wait = colors.get("part-wait");
      this.transfer = colors.get("part-transfer");
      const own = { compute: "compute", copies: "copies", wait: "wait", transfer: "transfer" };
      this.kinds = run.kinds.map((kind) =>
        (own[kind] ? colors.get(`part-${own[kind]}`) : colors.of("cause", kind)));
      this.alone = colors.get("part-other");
    }

    on(color) {
      return luminance(color) > 0.3 ? "#101214" : "#ffffff";
    }
  }

  class Drawing extends Axes {
    // view: { run, rows, open, from, to, left, width, height, scroll }

    all() {
      const { context, colors } = this;
      context.fillStyle = colors.surface;
      context.fillRect(0, 0, this.width, this.height);
      this.grid();
      context.save();
      context.beginPath();
      context.rect(0, AXIS, this.width, this.height - AXIS);
      context.clip();
      for (const row of this.rows) {
        const y = row.y + AXIS - this.scroll;
        if (y > this.height || y + row.height < AXIS) continue;
        this.lane(row, y);
        this.label(row, y);
      }
      context.restore();
      this.bounds();
      this.axis();
    }

    label(row, y) {
      const { context, colors, run } = this;
      const isChain = row.lane.channel < 0;
      const fold = this.open.has(row.place) ? "▾" : "▸";
      const text = isChain ? `${fold} rank ${run.ranks[row.place].number}` : `stream ${row.lane.channel}`;
      context.fillStyle = colors.surface;
      context.fillRect(0, y - 1, this.left - 2, row.height + 2);
      context.fillStyle = isChain ? colors.text : colors.muted;
      context.fillText(text, isChain ? 6 : 20, y + row.height / 2 + 1);
    }

    /** Where steps begin. */
    bounds() {
      const { context, colors } = this;
      context.fillStyle = colors.muted;
      for (const { start } of this.run.steps) {
        const x = Math.round(this.x(start));
        if (x < this.left || x > this.width) continue;
        for (let y = AXIS; y < this.height; y += 6) context.fillRect(x, y, 1, 3);
      }
    }

    lane(row, y) {
      const { context, run } = this;
      context.save();
      context.beginPath();
      context.rect(this.left, y, this.width - this.left, row.height);
      context.clip();
      const [first, last] = run.between(row.lane, this.from, this.to);
      const draw = row.lane.channel < 0 ? this.piece : this.call;
      this.thin = new Map();
      this.pixel = -1;
      for (let i = first; i < last; i++) draw.call(this, i, y, row.height);
      this.flush(-1, y, row.height);
      context.restore();
    }

    /** Events narrower than a pixel: the colour with most time of each pixel. */
    add(x, color, ns, y, height) {
      if (x !== this.pixel) this.flush(x, y, height);
      this.thin.set(color, (this.thin.get(color) || 0) + ns);
    }

    flush(x, y, height) {
      if (this.thin.size) {
        const [color] = [...this.thin].reduce((best, each) => (each[1] > best[1] ? each : best));
        this.context.fillStyle = color;
        this.context.fillRect(this.pixel, y, 1, height);
        this.thin.clear();
      }
      this.pixel = x;
    }

    box(from, to, color, y, height) {
      const x = this.x(from);
      const width = (to - from) * this.scale;
      if (width < 1.5) {
        this.add(Math.floor(x), color, to - from, y, height);
        return 0;
      }
      this.flush(-1, y, height);
      const begin = Math.max(x, this.left - 2);
      this.context.fillStyle = color;
      this.context.fillRect(begin, y, Math.min(x + width, this.width + 2) - begin, height);
      return width;
    }

    piece(i, y, height) {
      const { pieces, kinds, texts } = this.run;
      const color = this.colors.kinds[pieces.kind[i]];
      const width = this.box(pieces.start[i], pieces.end[i], color, y, height);
      const kind = kinds[pieces.kind[i]];
      const isWork = kind === "compute" || kind === "copies";
      if (width) this.text(isWork && texts[pieces.text[i]] || kind, pieces.start[i], pieces.end[i], color, y, height);
    }

    /** A call: its wait until the last rank arrives, then its transfer; a mark where it arrives. */
    call(i, y, height) {
      const { calls } = this.run;
      const arrived = calls.start[i] + calls.wait[i];
      const color = calls.instance[i] ? this.colors.transfer : this.colors.alone;
      if (calls.wait[i]) this.box(calls.start[i], arrived, this.colors.wait, y, height);
      const width = this.box(arrived, calls.end[i], color, y, height);
      if (width) this.text(this.run.signature(calls.signature[i])[0], arrived, calls.end[i], color, y, height);
      if ((calls.end[i] - calls.start[i]) * this.scale < 4) return;
      this.flush(-1, y, height);
      this.context.fillStyle = this.colors.text;
      this.context.fillRect(this.x(calls.start[i]), y, 1.5, height);
    }

    text(text, from, to, color, y, height) {
      const x = Math.max(this.x(from), this.left);
      const width = Math.min(this.x(to), this.width) - x;
      const room = Math.floor((width - 8) / CHARACTER);
      if (room < 4) return;
      this.context.fillStyle = this.colors.on(color);
      this.context.fillText(fastprof.cut(text, room), x + 4, y + height / 2 + 1);
    }
  }

  return { AXIS, Colors, Drawing, layout };
})();

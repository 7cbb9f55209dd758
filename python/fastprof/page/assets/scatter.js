/* Roofline: a circle per operator and shape, logarithmic, with the roofs of the GPU. */
"use strict";

fastprof.define("scatter", (host, data, arrays, page) => {
  const { format, colors } = page;
  const n = arrays.row.length;
  const largest = arrays.ns[0];
  const hidden = new Set();
  let selected = -1;

  const text = (name, i) => {
    const id = arrays[name][i];
    return id < 0 ? null : data.labels[name][id];
  };
  const color = (i) => colors.of("kind", text("kind", i) || "other");
  const radius = (i) => Math.max(Math.sqrt(arrays.ns[i] / largest) * widest(), 2.5);
  const widest = () => Math.min(Math.max(host.clientWidth / 40, 10), 24);
  const isShown = (i) => !hidden.has(text("kind", i));

  /** The lines of the tooltip of a circle. */
  function lines(i) {
    const name = [text("dir", i), text("op", i)].filter(Boolean).join(" ") || "unknown operator";
    const ns = Number.isNaN(arrays.step[i])
      ? `${format.time(arrays.ns[i])} GPU time`
      : `${format.time(arrays.step[i])} per step, ${format.time(arrays.ns[i])} in all`;
    const bound = text("bound", i);
    const found = [
      name,
      text("shape", i),
      text("layer", i) && `layer ${text("layer", i)}`,
      text("line", i) && `line ${text("line", i)}`,
      `${ns}, ${format.time(arrays.lost[i])} lost`,
      `${format.percent(arrays.share[i])} of the roof${bound ? `, bound by ${bound}` : ""}`,
      `${format.rate(arrays.rate[i])} at ${Number(arrays.intensity[i].toPrecision(3))} FLOP/byte`,
    ];
    return found.filter(Boolean).map((each) => (each.length > 160 ? `${each.slice(0, 160)}…` : each));
  }

  const peaks = Object.entries(data.peaks);
  const ridge = (peak) => (data.bandwidth ? peak / data.bandwidth : 0);
  const bounds = (values) => {
    const known = values.filter((each) => each > 0);
    return [Math.min(...known) / 3, Math.max(...known) * 3];
  };
  const whole = {
    x: bounds([...arrays.intensity, 0.1, ...peaks.map(([, peak]) => ridge(peak) * 2)]),
    y: bounds([...arrays.rate, ...peaks.map(([, peak]) => peak)]),
  };

  /** The line of each roof. */
  function drawRoofs(plot) {
    const { ctx } = plot;
    const at = (x, y) => [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)];
    const [low, high] = [plot.scales.x.min, plot.scales.x.max];
    const highest = Math.max(...peaks.map(([, peak]) => peak), 0);
    const line = (from, to) => {
      ctx.beginPath();
      ctx.moveTo(...at(...from));
      ctx.lineTo(...at(...to));
      ctx.stroke();
    };
    ctx.strokeStyle = colors.get("text");
    ctx.lineWidth = 1.25 * devicePixelRatio;
    if (data.bandwidth) {
      const end = highest ? Math.min(ridge(highest), high) : high;
      line([low, low * data.bandwidth], [end, end * data.bandwidth]);
    }
    for (const [, peak] of peaks) line([Math.max(ridge(peak), low), peak], [high, peak]);
  }

  /** The labels of the roofs, legible above circles. */
  function drawLabels(plot) {
    const { ctx } = plot;
    const at = (x, y) => [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)];
    const [low, high] = [plot.scales.x.min, plot.scales.x.max];
    const gap = 4 * devicePixelRatio;
    const write = (label, x, y) => {
      ctx.strokeText(label, x, y);
      ctx.fillText(label, x, y);
    };
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.fillStyle = colors.get("text");
    ctx.strokeStyle = colors.get("surface");
    ctx.lineWidth = 3 * devicePixelRatio;
    ctx.lineJoin = "round";
    ctx.textBaseline = "bottom";
    if (data.bandwidth) {
      const [[x0, y0], [x1, y1]] = [at(low, low * data.bandwidth), at(low * 10, low * 10 * data.bandwidth)];
      const start = Math.max(low, plot.scales.y.min / data.bandwidth);
      ctx.save();
      ctx.translate(...at(start, start * data.bandwidth));
      ctx.rotate(Math.atan2(y1 - y0, x1 - x0));
      ctx.textAlign = "left";
      write(format.bandwidth(data.bandwidth), 4 * gap, -gap / 2);
      ctx.restore();
    }
    ctx.textAlign = "right";
    for (const [name, peak] of peaks) {
      const [x, y] = at(high, peak);
      write(`${name} ${format.rate(peak)}`, x - gap, y - gap / 2);
    }
  }

  function draw(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    drawRoofs(plot);
    for (let i = 0; i < n; i++) if (isShown(i)) circle(plot, i, i === selected);
    if (selected >= 0 && isShown(selected)) circle(plot, selected, true);
    drawLabels(plot);
    ctx.restore();
  }

  function circle(plot, i, isSelected) {
    const { ctx } = plot;
    const x = plot.valToPos(arrays.intensity[i], "x", true);
    const y = plot.valToPos(arrays.rate[i], "y", true);
    ctx.beginPath();
    ctx.arc(x, y, radius(i) * devicePixelRatio, 0, 2 * Math.PI);
    ctx.globalAlpha = isSelected ? 0.95 : 0.6;
    ctx.fillStyle = color(i);
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.lineWidth = (isSelected ? 2.5 : 0.75) * devicePixelRatio;
    ctx.strokeStyle = colors.get(isSelected ? "text" : "surface");
    ctx.stroke();
  }

  /** The smallest circle at a point of the plot in CSS pixels; -1 for none. */
  function hit(x, y) {
    for (let i = n - 1; i >= 0; i--) {
      const dx = plot.valToPos(arrays.intensity[i], "x") - x;
      const dy = plot.valToPos(arrays.rate[i], "y") - y;
      if (isShown(i) && dx * dx + dy * dy <= Math.max(radius(i), 5) ** 2) return i;
    }
    return -1;
  }

  function select(i) {
    if (i === selected) return;
    selected = i;
    status.textContent = i < 0 ? "" : lines(i).join(" · ");
    plot.redraw(false);
  }

  /** Select the next circle in order of time. */
  function move(step) {
    for (let i = (selected + step + n) % n, left = n; left > 0; i = (i + step + n) % n, left--) {
      if (isShown(i)) return select(i);
    }
  }

  function reveal() {
    const table = page.tables.get(data.table);
    if (selected >= 0 && table) table.reveal(arrays.row[selected]);
  }

  function reset() {
    plot.setScale("x", { min: whole.x[0], max: whole.x[1] });
    plot.setScale("y", { min: whole.y[0], max: whole.y[1] });
  }

  const scale = { time: false, distr: 3, auto: false, range: (u, min, max) => [min, max] };
  const order = [...arrays.intensity.keys()].sort((a, b) => arrays.intensity[a] - arrays.intensity[b]);
  const number = (value) => Number(value.toPrecision(3)).toString();
  const logarithmic = { splits: plots.powers, filter: (u, splits) => splits };
  const label = `${host.closest("figure").querySelector("figcaption").textContent}. Arrow keys select, Enter shows the row of the table.`;
  const [plot, status] = plots.make(host, page, {
    scales: { x: { ...scale }, y: { ...scale } },
    axes: [
      { ...plots.axis(page, "arithmetic intensity (FLOP/byte)", number, 40), ...logarithmic },
      { ...plots.axis(page, "rate", format.rate, 84), ...logarithmic },
    ],
    series: [{}, { paths: () => null, points: { show: false } }],
    cursor: { x: false, y: false, points: { show: false }, drag: { x: true, y: true, uni: 30 } },
    hooks: { draw: [draw] },
  }, [order.map((i) => arrays.intensity[i]), order.map((i) => arrays.rate[i])], label);
  reset();
  host.prepend(keys());

  /** Kinds with their colour and time; a click hides a kind. */
  function keys() {
    const times = new Map();
    for (let i = 0; i < n; i++) {
      const kind = text("kind", i);
      times.set(kind, (times.get(kind) || 0) + arrays.ns[i]);
    }
    const list = page.element("ul", "plot-keys");
    for (const [kind, ns] of [...times].sort((a, b) => b[1] - a[1])) {
      const button = page.element("button");
      const swatch = page.element("span", "plot-swatch");
      const paint = () => { swatch.style.backgroundColor = colors.of("kind", kind || "other"); };
      paint();
      page.onTheme(paint);
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(swatch, `${kind || "unknown"} ${format.time(ns)}`);
      button.addEventListener("click", () => {
        const shown = !hidden.delete(kind);
        if (shown) hidden.add(kind);
        button.setAttribute("aria-pressed", String(!shown));
        plot.redraw(false);
      });
      const item = page.element("li");
      item.append(button);
      list.append(item);
    }
    return list;
  }

  plot.over.addEventListener("mousemove", (event) => {
    const i = hit(event.offsetX, event.offsetY);
    select(i);
    plot.over.style.cursor = i < 0 ? "crosshair" : "pointer";
    if (i < 0) page.tooltip.hide();
    else page.tooltip.show(event.clientX, event.clientY, [...lines(i), "click: row of the table"]);
  });
  plot.over.addEventListener("mouseleave", () => page.tooltip.hide());
  plot.over.addEventListener("click", (event) => {
    select(hit(event.offsetX, event.offsetY));
    reveal();
  });
  plot.over.addEventListener("dblclick", reset);
  host.addEventListener("keydown", (event) => {
    if (event.target !== host) return;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      move(step);
    } else if (event.key === "Enter") reveal();
    else if (event.key === "+") plots.zoom(plot, ["x", "y"], 0.7);
    else if (event.key === "-") plots.zoom(plot, ["x", "y"], 1 / 0.7);
    else if (event.key === "Escape" || event.key === "0") reset();
    else return;
    event.preventDefault();
  });
});

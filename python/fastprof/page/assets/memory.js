/* Memory over time: allocated and reserved bytes, the peak, the steps. */
"use strict";

fastprof.define("memory", (host, data, arrays, page) => {
  const { format, colors } = page;
  const n = arrays.ns.length;
  let selected = -1;

  /** The step that contains a time; -1 for none. */
  function stepAt(ns) {
    let found = -1;
    for (let i = 0; i < arrays.step.length && arrays.step_ns[i] <= ns; i++) found = arrays.step[i];
    return found;
  }

  function lines(i) {
    const ns = arrays.ns[i];
    const step = stepAt(ns);
    return [
      `${format.bytes(arrays.allocated[i])} allocated`,
      arrays.reserved && !Number.isNaN(arrays.reserved[i])
        ? `${format.bytes(arrays.reserved[i])} reserved` : null,
      `${format.time(ns)} after the first event${step < 0 ? "" : `, step ${step}`}`,
    ].filter(Boolean);
  }

  function draw(plot) {
    const { ctx, bbox } = plot;
    const bottom = bbox.top + bbox.height;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, 0, bbox.width, bottom);
    ctx.clip();
    ctx.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "bottom";
    ctx.strokeStyle = colors.get("line-strong");
    ctx.fillStyle = colors.get("muted");
    ctx.lineWidth = devicePixelRatio / 2;
    let free = -Infinity;
    for (let i = 0; i < arrays.step.length; i++) {
      const x = plot.valToPos(arrays.step_ns[i], "x", true);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bottom);
      ctx.stroke();
      const label = `step ${arrays.step[i]}`;
      if (x >= free) {
        ctx.fillText(label, x, bbox.top - 2 * devicePixelRatio);
        free = x + ctx.measureText(label).width + 12 * devicePixelRatio;
      }
    }
    if (data.peak_ns !== null) mark(plot, data.peak_ns, data.peak_bytes, "warn", true);
    if (selected >= 0) mark(plot, arrays.ns[selected], arrays.allocated[selected], "text", false);
    ctx.restore();
  }

  /** A dot, and at the peak its size. */
  function mark(plot, ns, bytes, color, isPeak) {
    const { ctx, bbox } = plot;
    const [x, y] = [plot.valToPos(ns, "x", true), plot.valToPos(bytes, "y", true)];
    ctx.fillStyle = colors.get(color);
    ctx.beginPath();
    ctx.arc(x, y, 4 * devicePixelRatio, 0, 2 * Math.PI);
    ctx.fill();
    if (!isPeak) return;
    const label = `peak ${format.bytes(bytes)}`;
    const fits = x + ctx.measureText(label).width + 12 * devicePixelRatio < bbox.left + bbox.width;
    ctx.textAlign = fits ? "left" : "right";
    ctx.textBaseline = "bottom";
    ctx.fillText(label, x + (fits ? 7 : -7) * devicePixelRatio, y - 3 * devicePixelRatio);
    ctx.textAlign = "left";
  }

  function select(i) {
    if (i === selected) return;
    selected = i;
    status.textContent = i < 0 ? "" : lines(i).join(" · ");
    plot.redraw(false);
  }

  const whole = { min: 0, max: Math.max(arrays.ns[n - 1], 1) };
  const most = Math.max(...arrays.allocated, ...(arrays.reserved || []).filter((each) => each > 0), 1);
  const least = Math.min(...arrays.allocated, 0);
  const stepped = uPlot.paths.stepped({ align: 1 });
  const curve = (color, fill) => ({
    paths: stepped,
    points: { show: false },
    stroke: () => colors.get(color),
    width: 1.25,
    fill: fill ? () => `${colors.get(color)}38` : undefined,
  });
  const columns = [arrays.ns, arrays.allocated];
  const series = [{}, curve("kind-gemm", true)];
  if (arrays.reserved) {
    columns.push(Array.from(arrays.reserved, (each) => (Number.isNaN(each) ? null : each)));
    series.push(curve("kind-optimizer", false));
  }
  const caption = host.closest("figure").querySelector("figcaption").textContent;
  const [plot, status] = plots.make(host, page, {
    scales: {
      x: { time: false, auto: false, range: (u, min, max) => [min, max] },
      y: { auto: false, range: (u, min, max) => [min, max] },
    },
    axes: [
      plots.axis(page, "time after the first event", format.time, 40),
      plots.axis(page, "memory", format.bytes, 72),
    ],
    series,
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
    hooks: { draw: [draw], setCursor: [hover] },
  }, columns, `${caption}. Arrow keys move along the curve, + and - zoom, P selects the peak.`);
  plot.setScale("y", { min: least, max: most * 1.08 });
  reset();
  host.prepend(legend());

  function legend() {
    const list = page.element("ul", "plot-keys");
    const names = arrays.reserved ? ["allocated", "reserved"] : ["allocated"];
    names.forEach((name, i) => {
      const item = page.element("li");
      const swatch = page.element("span", "plot-swatch");
      const paint = () => {
        swatch.style.backgroundColor = colors.get(i ? "kind-optimizer" : "kind-gemm");
      };
      paint();
      page.onTheme(paint);
      item.append(swatch, name);
      list.append(item);
    });
    return list;
  }

  function reset() {
    plot.setScale("x", whole);
  }

  function hover(u) {
    const { left, idx } = u.cursor;
    if (left < 0 || idx === null || idx === undefined) return page.tooltip.hide();
    select(idx);
    const box = u.over.getBoundingClientRect();
    return page.tooltip.show(box.left + left, box.top + u.cursor.top, lines(idx));
  }

  plot.over.addEventListener("mouseleave", () => page.tooltip.hide());
  plot.over.addEventListener("dblclick", reset);
  host.addEventListener("keydown", (event) => {
    if (event.target !== host) return;
    const jump = event.shiftKey ? Math.ceil(n / 50) : 1;
    const step = { ArrowRight: jump, ArrowLeft: -jump }[event.key];
    if (step) select(Math.min(Math.max(selected + step, 0), n - 1));
    else if (event.key === "Home") select(0);
    else if (event.key === "End") select(n - 1);
    else if (event.key.toLowerCase() === "p") select(arrays.ns.indexOf(data.peak_ns));
    else if (event.key === "+") plots.zoom(plot, ["x"], 0.7);
    else if (event.key === "-") plots.zoom(plot, ["x"], 1 / 0.7);
    else if (event.key === "Escape" || event.key === "0") reset();
    else return;
    event.preventDefault();
  });
});

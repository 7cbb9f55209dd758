/* Stacked bars on canvas: parts of each step, or of each rank.
 * data: unit (name of a bar), labels [bars], parts [{name, color: [group, name]}].
 * arrays.values [parts * bars], ns, part by part. */
"use strict";

fastprof.define("bars", (host, data, arrays, page) => {
  const { parts, labels } = data;
  const n = labels.length;
  const HEIGHT = 220, LEFT = 58, BOTTOM = 22, TOP = 8;
  const value = (part, bar) => arrays.values[part * n + bar];
  const totals = Float64Array.from({ length: n }, (_, bar) =>
    parts.reduce((sum, _, part) => sum + value(part, bar), 0));
  const highest = totals.reduce((most, each) => Math.max(most, each), 0) || 1;

  host.classList.add("bars");
  const legend = page.element("ul", "legend");
  for (const { name, color } of parts) {
    const item = page.element("li");
    const swatch = page.element("i");
    swatch.style.background = page.colors.of(...color);
    page.onTheme(() => (swatch.style.background = page.colors.of(...color)));
    item.append(swatch, name);
    legend.append(item);
  }
  const canvas = page.element("canvas");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Stacked bars, one per ${data.unit}. Arrow keys select a bar.`);
  const line = page.element("p", "selected");
  line.setAttribute("aria-live", "polite");
  host.append(legend, canvas, line);

  let selected = -1;
  let places = [];  // the bar drawn in each column

  /** Columns of the canvas: one bar each, or the longest of several where they are too narrow. */
  function layout(width) {
    const columns = Math.min(n, Math.max(1, Math.floor(width)));
    places = Array.from({ length: columns }, (_, column) => {
      const first = Math.floor((column * n) / columns);
      const end = Math.max(first + 1, Math.floor(((column + 1) * n) / columns));
      let longest = first;
      for (let bar = first + 1; bar < end; bar++) if (totals[bar] > totals[longest]) longest = bar;
      return longest;
    });
    return width / columns;
  }

  function ticks() {
    const rough = highest / 3;
    const size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((each) => each * size >= rough) * size;
    const found = [];
    for (let at = 0; at <= highest; at += step) found.push(at);
    return found;
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth || 600;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(HEIGHT * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const inner = HEIGHT - BOTTOM - TOP;
    const y = (ns) => TOP + inner * (1 - ns / highest);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const at of ticks()) {
      context.fillStyle = page.colors.get("line");
      context.fillRect(LEFT, Math.round(y(at)), width - LEFT, 1);
      context.fillStyle = page.colors.get("muted");
      context.fillText(at ? page.format.time(at) : "0", LEFT - 8, y(at));
    }
    const pitch = layout(width - LEFT - 2);
    const gap = pitch >= 4 ? Math.min(pitch * 0.25, 12) : 0;
    const wide = Math.min(pitch - gap, 90);
    const colors = parts.map(({ color }) => page.colors.of(...color));
    context.textAlign = "center";
    const every = Math.ceil(44 / pitch);
    places.forEach((bar, column) => {
      const x = LEFT + column * pitch + (pitch - wide) / 2;
      let below = 0;
      for (let part = 0; part < parts.length; part++) {
        const ns = value(part, bar);
        if (!ns) continue;
        context.fillStyle = colors[part];
        context.fillRect(x, y(below + ns), wide, y(below) - y(below + ns));
        below += ns;
      }
      if (bar === selected) {
        context.strokeStyle = page.colors.get("text");
        context.lineWidth = 1.5;
        context.strokeRect(x - 1.5, y(below) - 1.5, wide + 3, y(0) - y(below) + 3);
      }
      if (column % every === 0) {
        context.fillStyle = page.colors.get("muted");
        context.fillText(labels[bar], x + wide / 2, HEIGHT - BOTTOM / 2 + 1);
      }
    });
  }

  function lines(bar) {
    const some = parts
      .map(({ name }, part) => [name, value(part, bar)])
      .filter(([, ns]) => ns > 0)
      .map(([name, ns]) => `${name}: ${page.format.time(ns)}, ${page.format.percent(ns / totals[bar])}`);
    return [`${data.unit} ${labels[bar]}: ${page.format.time(totals[bar])}`.replace(" :", ":"), ...some];
  }

  function select(bar) {
    if (bar === selected) return;
    selected = bar;
    line.textContent = bar < 0 ? "" : lines(bar).join(" · ");
    draw();
  }

  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const pitch = (box.width - LEFT - 2) / places.length;
    const column = Math.floor((event.clientX - box.left - LEFT) / pitch);
    if (column < 0 || column >= places.length) return page.tooltip.hide();
    select(places[column]);
    page.tooltip.show(event.clientX, event.clientY, lines(selected));
  });
  canvas.addEventListener("pointerleave", () => page.tooltip.hide());
  canvas.addEventListener("keydown", (event) => {
    const column = places.indexOf(selected);
    const to = {
      ArrowRight: Math.min(column + 1, places.length - 1), ArrowLeft: Math.max(column - 1, 0),
      Home: 0, End: places.length - 1,
    }[event.key];
    if (event.key === "Escape") select(-1);
    if (to === undefined) return;
    event.preventDefault();
    select(places[to]);
  });
  page.onTheme(draw);
  page.onResize(canvas, draw);
  draw();
});

/* A small line chart of one figure over captures, on canvas, with the places where its level changes.
 * data: unit (ns, share, bytes), name, labels [captures], changes [{at, text}],
 * levels [changes] of [old, new]. arrays.values [captures], NaN where unknown. */
"use strict";

fastprof.define("series", (host, data, arrays, page) => {
  const { labels, changes, levels } = data;
  const { values } = arrays;
  const n = values.length;
  const HEIGHT = 130, LEFT = 72, RIGHT = 10, BOTTOM = 20, TOP = 10;
  const text = { ns: page.format.time, share: page.format.percent, bytes: page.format.bytes }[data.unit];
  const known = values.filter((each) => !Number.isNaN(each));
  const least = known.reduce((low, each) => Math.min(low, each), Infinity);
  const most = known.reduce((high, each) => Math.max(high, each), -Infinity);
  const margin = (most - least) * 0.12 || Math.abs(most) * 0.05 || 1;
  const [low, high] = [least - margin, most + margin];
  let selected = -1;

  host.classList.add("series");
  const canvas = page.element("canvas");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label",
    `${data.name} of ${n} captures, changes: ${changes.length}. Arrow keys select a capture.`);
  const line = page.element("p", "selected");
  line.setAttribute("aria-live", "polite");
  host.append(canvas, line);

  const width = () => canvas.clientWidth || 600;
  const x = (i) => LEFT + ((width() - LEFT - RIGHT) * (n > 1 ? i / (n - 1) : 0.5));
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low));

  function ticks() {
    const rough = (high - low) / 3;
    const size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((each) => each * size >= rough) * size;
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
    return found;
  }

  function axes(context) {
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const at of ticks()) {
      context.fillStyle = page.colors.get("line");
      context.fillRect(LEFT, Math.round(y(at)), width() - LEFT - RIGHT, 1);
      context.fillStyle = page.colors.get("muted");
      context.fillText(at ? text(at) : "0", LEFT - 8, y(at));
    }
    context.textAlign = "left";
    context.fillText(labels[0], LEFT, HEIGHT - BOTTOM / 2 + 2, (width() - LEFT) / 2 - 8);
    context.textAlign = "right";
    if (n > 1) {
      context.fillText(labels[n - 1], width() - RIGHT, HEIGHT - BOTTOM / 2 + 2, (width() - LEFT) / 2 - 8);
    }
  }

  /** The values; a gap where one is unknown, a dot where both neighbours are. */
  function curve(context) {
    context.strokeStyle = context.fillStyle = page.colors.get("kind-gemm");
    context.lineWidth = 1.25;
    context.beginPath();
    for (let i = 0, open = false; i < n; i++) {
      if (Number.isNaN(values[i])) open = false;
      else if (open) context.lineTo(x(i), y(values[i]));
      else {
        context.moveTo(x(i), y(values[i]));
        open = true;
      }
    }
    context.stroke();
    if (n <= 150) for (let i = 0; i < n; i++) if (!Number.isNaN(values[i])) dot(context, i, 2);
  }

  function dot(context, i, radius) {
    context.beginPath();
    context.arc(x(i), y(values[i]), radius, 0, 2 * Math.PI);
    context.fill();
  }

  /** The level before and after each change, and a line where it is. */
  function marks(context) {
    const ends = [0, ...changes.map(({ at }) => at), n];
    context.strokeStyle = context.fillStyle = page.colors.get("warn");
    changes.forEach(({ at }, i) => {
      const place = (x(at - 1) + x(at)) / 2;
      context.lineWidth = 1;
      context.setLineDash([4, 3]);
      context.beginPath();
      context.moveTo(place, TOP - 4);
      context.lineTo(place, HEIGHT - BOTTOM);
      context.stroke();
      context.setLineDash([]);
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(x(ends[i]), y(levels[i][0]));
      context.lineTo(place, y(levels[i][0]));
      context.moveTo(place, y(levels[i][1]));
      context.lineTo(x(ends[i + 2] - 1), y(levels[i][1]));
      context.stroke();
    });
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width() * ratio);
    canvas.height = Math.round(HEIGHT * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    if (!known.length) return;
    axes(context);
    curve(context);
    marks(context);
    if (selected >= 0 && !Number.isNaN(values[selected])) {
      context.fillStyle = page.colors.get("text");
      dot(context, selected, 4);
    }
  }

  function lines(i) {
    const change = changes.find(({ at }) => at === i);
    const value = Number.isNaN(values[i]) ? "na" : text(values[i]);
    return [`${value}, capture ${labels[i]}`, ...(change ? [change.text] : [])];
  }

  function select(i) {
    if (i === selected) return;
    selected = i;
    line.textContent = i < 0 ? "" : lines(i).join(" · ");
    draw();
  }

  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - LEFT) / Math.max(width() - LEFT - RIGHT, 1);
    select(Math.min(Math.max(Math.round(share * (n - 1)), 0), n - 1));
    page.tooltip.show(event.clientX, event.clientY, lines(selected));
  });
  canvas.addEventListener("pointerleave", () => page.tooltip.hide());
  canvas.addEventListener("keydown", (event) => {
    const to = {
      ArrowRight: Math.min(selected + 1, n - 1), ArrowLeft: Math.max(selected - 1, 0),
      Home: 0, End: n - 1,
    }[event.key];
    if (event.key === "Escape") select(-1);
    if (to === undefined) return;
    event.preventDefault();
    select(to);
  });
  page.onTheme(draw);
  page.onResize(canvas, draw);
  draw();
});

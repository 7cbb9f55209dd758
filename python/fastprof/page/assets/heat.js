/* A map of ranks (rows) and steps (columns), coloured by time.
 * data: rows (names), steps (numbers), counted (whether means include the step), marked (rows that
 * findings are about).
 * arrays, float64 [rows * steps], row by row: wait, waited_for and length in ns, below 0 where the
 * rank lacks the step; last, the rank waited for longest, -1 for none; for_last, how long. */
"use strict";

fastprof.define("heat", (host, data, arrays, page) => {
  const { rows, steps } = data;
  const n = steps.length;
  const LEFT = 104, TOP = 20;
  const MAPS = { wait: "waits of each rank", waited_for: "others wait for each rank" };
  const high = Math.max(2, Math.min(22, Math.floor(520 / rows.length)));
  const height = TOP + high * rows.length + 2;

  let name = "wait";
  let columns = []; // [first, end) of the steps in each column of the canvas
  let selected = null;

  host.classList.add("heat");
  const tools = page.element("div", "heat-tools");
  const choice = page.element("select");
  choice.setAttribute("aria-label", "What the map shows");
  for (const [value, text] of Object.entries(MAPS)) {
    const option = page.element("option", "", text);
    option.value = value;
    choice.append(option);
  }
  const key = page.element("canvas");
  key.setAttribute("aria-hidden", "true");
  const limit = page.element("span");
  tools.append(choice, page.element("span", "", "0"), key, limit);
  const canvas = page.element("canvas");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Map of ranks and steps. Arrow keys select a cell.");
  const line = page.element("p", "selected");
  line.setAttribute("aria-live", "polite");
  host.append(tools, canvas, line);

  const at = (row, step, of = name) => arrays[of][row * n + step];

  /** The step of a column with the most time of a row. */
  function stepOf(row, column) {
    const [first, end] = columns[column];
    let best = first;
    for (let step = first + 1; step < end; step++) if (at(row, step) > at(row, best)) best = step;
    return best;
  }

  function parts(color) {
    const found = /^#(..)(..)(..)/.exec(color);
    return found === null ? [128, 128, 128] : found.slice(1).map((each) => parseInt(each, 16));
  }

  /** The colour of a share of the largest time: from the ground to that of waits. */
  function scale() {
    const [from, to] = ["raised", "part-wait"].map((each) => parts(page.colors.get(each)));
    return (share) => `rgb(${from.map((each, i) => Math.round(each + share * (to[i] - each)))})`;
  }

  function layout() {
    const width = (canvas.clientWidth || 600) - LEFT - 2;
    const count = Math.min(n, Math.max(1, Math.floor(width / 2)));
    columns = Array.from({ length: count }, (_, i) => [
      Math.floor((i * n) / count), Math.max(Math.floor(((i + 1) * n) / count), Math.floor((i * n) / count) + 1),
    ]);
    return Math.min(width / count, 120);
  }

  function draw() {
    const pitch = layout();
    const context = timelineDraw.prepare(canvas, canvas.clientWidth || 600, height);
    canvas.style.width = ""; // that of its place
    const color = scale();
    const longest = arrays[name].reduce((sum, each) => Math.max(sum, each), 0);
    const most = longest || 1;
    limit.textContent = page.format.time(longest);
    context.clearRect(0, 0, canvas.clientWidth, height);
    const gap = high >= 8 && pitch >= 8 ? 1 : 0;
    for (let row = 0; row < rows.length; row++) {
      for (let column = 0; column < columns.length; column++) {
        const ns = at(row, stepOf(row, column));
        if (ns < 0) continue;
        context.fillStyle = color(ns / most);
        context.fillRect(LEFT + column * pitch, TOP + row * high, pitch - gap, high - gap);
      }
    }
    labels(context, pitch);
    if (selected !== null) {
      const column = columns.findIndex(([first, end]) => selected.step >= first && selected.step < end);
      context.strokeStyle = page.colors.get("text");
      context.lineWidth = 2;
      context.strokeRect(LEFT + column * pitch, TOP + selected.row * high, pitch - gap, high - gap);
    }
    legend(color);
  }

  function labels(context, pitch) {
    context.fillStyle = page.colors.get("muted");
    context.textAlign = "right";
    const everyRow = Math.ceil(13 / high);
    const always = [...data.marked, rows.length - 1];
    for (let row = 0; row < rows.length; row++) {
      const isOwn = always.includes(row);
      const isFree = always.every((each) => each === row || Math.abs(each - row) >= everyRow);
      if (!isOwn && (row % everyRow || !isFree)) continue;
      context.fillStyle = page.colors.get(data.marked.includes(row) ? "text" : "muted");
      context.fillText(rows[row], LEFT - 6, TOP + row * high + high / 2);
    }
    context.fillStyle = page.colors.get("muted");
    context.textAlign = "center";
    const every = Math.ceil(48 / pitch);
    for (let column = 0; column < columns.length; column += every) {
      context.fillText(`step ${steps[columns[column][0]]}`.slice(pitch * every < 60 ? 5 : 0),
        LEFT + (column + 0.5) * pitch, TOP / 2);
    }
  }

  function legend(color) {
    const context = timelineDraw.prepare(key, 120, 10);
    for (let x = 0; x < 120; x++) {
      context.fillStyle = color(x / 119);
      context.fillRect(x, 0, 1, 10);
    }
  }

  function lines(row, step) {
    const { time, percent } = page.format;
    const title = `${rows[row]}, step ${steps[step]}`;
    const length = at(row, step, "length");
    if (length < 0) return [title, "not recorded"];
    const found = [data.counted[step] ? title : `${title} (not in means)`];
    const wait = Math.max(at(row, step, "wait"), 0);
    found.push(`waits ${time(wait)}, ${percent(wait / Math.max(length, 1))} of the ${time(length)} of its step`);
    if (at(row, step, "for_last") > 0) {
      found.push(`longest for rank ${at(row, step, "last")}: ${time(at(row, step, "for_last"))}`);
    }
    found.push(`others wait for it: ${time(at(row, step, "waited_for"))} of GPU time`);
    return found;
  }

  function select(row, step) {
    selected = { row, step };
    line.textContent = lines(row, step).join(" · ");
    draw();
  }

  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const pitch = layout();
    const column = Math.floor((event.clientX - box.left - LEFT) / pitch);
    const row = Math.floor((event.clientY - box.top - TOP) / high);
    if (column < 0 || column >= columns.length || row < 0 || row >= rows.length) {
      page.tooltip.hide();
      return;
    }
    const step = stepOf(row, column);
    if (selected === null || selected.row !== row || selected.step !== step) select(row, step);
    page.tooltip.show(event.clientX, event.clientY, lines(row, step));
  });
  canvas.addEventListener("pointerleave", () => page.tooltip.hide());
  canvas.addEventListener("keydown", (event) => {
    const { row, step } = selected || { row: 0, step: 0 };
    const to = {
      ArrowRight: [row, Math.min(step + 1, n - 1)], ArrowLeft: [row, Math.max(step - 1, 0)],
      ArrowDown: [Math.min(row + 1, rows.length - 1), step], ArrowUp: [Math.max(row - 1, 0), step],
      Home: [row, 0], End: [row, n - 1],
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select(...to);
  });
  choice.addEventListener("change", () => {
    name = choice.value;
    draw();
  });
  page.onTheme(draw);
  page.onResize(canvas, draw);
  draw();
});

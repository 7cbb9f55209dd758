/* The time line of a step: view, pointer, keyboard and selection. */
"use strict";

fastprof.define("timeline", (host, data, arrays, page) => {
  const { AXIS } = timelineDraw;
  const GUTTER = 96;
  const MAP = 30;
  const { NARROWEST } = timelineView;
  const HINT = "Select an event: click it, or focus the chart and press an arrow key.";

  const lines = new Map();
  let line, place, colors, shown;
  let selected = -1;
  let matches = [];
  let isMatch = null;
  let match = -1;

  const acts = { choose, search, next, fit, zoom: (by) => view.zoom(center(), by) };
  const tools = timelineParts.tools(page, data, acts);
  const detail = timelineParts.detail(page, (i) => select(i, true));
  const map = page.element("canvas", "timeline-map");
  map.setAttribute("aria-hidden", "true");
  const stage = new timelineView.Stage(page, "Time line. Arrow keys move, W and S zoom, A and D pan, "
    + "Enter or F zooms to the selected event, N and P walk the matches of the search, Escape "
    + "clears, 0 shows all.");
  const { scroll, over } = stage;
  const view = new timelineView.View(
    stage, () => (host.clientWidth >= 700 ? GUTTER : 0), () => line.bounds, keepView,
  );
  const redraw = timelineView.atNextFrame(draw);
  let key = page.element("div");
  host.classList.add("timeline");
  host.append(tools.bar, map, scroll, detail.box, key);

  function lineOf(index) {
    if (!lines.has(index)) lines.set(index, new timelineData.TimeLine(data, arrays, index));
    return lines.get(index);
  }

  function choose(index) {
    line = lineOf(index);
    keep("step", index || null);
    selected = -1;
    detail.clear(HINT);
    search(tools.search.value);
    scroll.scrollTop = 0;
    fit();
    recolor();
  }

  /** Keep a part of the view in the address. */
  function keep(name, value) {
    page.address.set(`${host.id}.${name}`, value);
  }

  /** Restore the view that the address has; what does not fit the page is ignored. */
  function restore() {
    const kept = (name) => page.address.get(`${host.id}.${name}`);
    const [step, find, range, event] = ["step", "find", "view", "event"].map(kept);
    const index = Number(step) < data.choices.length ? Number(step) : 0;
    tools.choice.value = index;
    tools.search.value = find || "";
    choose(index);
    const [from, to] = (range || "").split(":").map(Number);
    if (to > from) view.set(from, to);
    else if (!data.choices[index].isStep) showIdle();
    if (event !== undefined && Number(event) < line.start.length) select(Number(event), !range);
  }

  /** Without steps, show what is around the longest gap of a GPU. */
  function showIdle() {
    let longest = -1;
    const length = (i) => line.end[i] - line.start[i];
    for (const lane of line.lanes) {
      if (lane.kind !== "idle") continue;
      for (let i = lane.first; i < lane.last; i++) {
        if (longest < 0 || length(i) > length(longest)) longest = i;
      }
    }
    if (longest >= 0 && length(longest) < line.length / 5) zoomTo(longest, 2);
  }

  function recolor() {
    colors = new timelineDraw.Colors(line, page.colors);
    const made = timelineParts.key(page, line, colors);
    key.replaceWith(made);
    key = made;
    resize();
    draw(); // printing does not wait for a frame
  }

  /* ---- View ---- */

  function keepView() {
    const { from, to } = view;
    Object.assign(host.dataset, { from, to });
    const isAll = from <= 0 && to >= line.length;
    keep("view", isAll ? null : `${Math.round(from)}:${Math.round(to)}`);
    redraw();
  }

  function fit() {
    view.set(0, line.length);
  }

  function center() {
    if (selected < 0) return view.middle;
    return Math.min(Math.max((line.start[selected] + line.end[selected]) / 2, view.from), view.to);
  }

  function resize() {
    place = timelineDraw.layout(line, data.threads, view.left() > 0);
    stage.resize(place.height);
    redraw();
  }

  /* ---- Drawing ---- */

  function draw() {
    if (!stage.width) return;
    const began = performance.now();
    shown = { line, rows: place.rows, from: view.from, to: view.to, left: view.left(),
      width: stage.width, height: stage.height, scroll: scroll.scrollTop, matches: isMatch };
    const context = timelineDraw.prepare(stage.under, shown.width, shown.height);
    new timelineDraw.Drawing(context, colors, shown).all();
    const size = { width: host.clientWidth, height: MAP };
    timelineDraw.overview(map, colors, { ...shown, ...size });
    drawOver();
    host.dataset.milliseconds = (performance.now() - began).toFixed(1);
  }

  let hovered = -1;

  function boxOf(i) {
    const row = place.rowOf.get(line.lanes[line.laneOf[i]]);
    const x = view.x(line.start[i]);
    return { x, y: stage.topOf(row), width: Math.max(view.x(line.end[i]) - x, 2), height: row.height };
  }

  function outline(context, i, color, thickness) {
    const { x, y, width: w, height } = boxOf(i);
    const begin = Math.max(x, view.left() - 4);
    const end = Math.min(x + w, stage.width + 4);
    if (end < begin || y + height < AXIS) return;
    context.strokeStyle = color;
    context.lineWidth = thickness;
    context.strokeRect(begin, y, end - begin, height);
  }

  function drawOver() {
    const context = timelineDraw.prepare(over, stage.width, stage.height);
    context.clearRect(0, 0, stage.width, stage.height);
    context.save();
    context.beginPath();
    context.rect(view.left(), AXIS, stage.width - view.left(), stage.height);
    context.clip();
    if (hovered >= 0) outline(context, hovered, colors.text, 1.5);
    if (selected >= 0) {
      for (const [role, target] of line.links(selected)) arrow(context, role, target);
      outline(context, selected, colors.text, 3);
      outline(context, selected, colors.surface, 1);
    }
    context.restore();
  }

  /** From the launch to its work, from forward to backward work: along the edge of the lane of the
   * target, where no text is. */
  function arrow(context, role, target) {
    if (role === "next") return;
    const isFrom = role === "launch" || role === "forward";
    const [from, to] = (isFrom ? [target, selected] : [selected, target]).map(boxOf);
    const isAbove = from.y < to.y;
    const [x0, x1] = [from.x + 1, to.x + 3];
    const edge = isAbove ? to.y - 1 : to.y + to.height + 1;
    const tip = isAbove ? to.y + 5 : to.y + to.height - 5;
    context.strokeStyle = context.fillStyle = colors.text;
    context.lineWidth = 1.5;
    context.setLineDash(role === "forward" || role === "backward" ? [5, 4] : []);
    context.beginPath();
    context.moveTo(x0, isAbove ? from.y + from.height : from.y);
    context.lineTo(x0, edge);
    context.lineTo(x1, edge);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.moveTo(x1, tip);
    context.lineTo(x1 - 4, edge);
    context.lineTo(x1 + 4, edge);
    context.fill();
    outline(context, target, colors.text, 1.5);
  }

  /* ---- Selection and search ---- */

  function select(i, isMoving) {
    selected = i;
    keep("event", i < 0 ? null : i);
    if (i < 0) {
      detail.clear(HINT);
    } else {
      detail.show(line, i, timelineParts.describe(line, i, page, data.threads));
      if (isMoving) reveal(i);
    }
    redraw();
  }

  /** Scroll and move the view until an event is inside. */
  function reveal(i) {
    const row = place.rowOf.get(line.lanes[line.laneOf[i]]);
    const room = stage.height - AXIS - row.height;
    scroll.scrollTop = Math.min(Math.max(scroll.scrollTop, row.y - room), row.y - 4);
    const isInside = line.end[i] > view.from && line.start[i] < view.to;
    if (!isInside) view.pan(line.start[i] - view.middle);
  }

  /** around: the time on each side, by the length of the event. */
  function zoomTo(i, around = 0.5) {
    const length = Math.max(line.end[i] - line.start[i], NARROWEST);
    view.set(line.start[i] - around * length, line.end[i] + around * length);
  }

  function search(text) {
    keep("find", text.trim());
    matches = line.search(text);
    match = -1;
    isMatch = null;
    if (text.trim()) {
      isMatch = new Uint8Array(line.start.length);
      for (const i of matches) isMatch[i] = 1;
    }
    tools.status.textContent = isMatch === null ? "" : counted();
    redraw();
  }

  function counted() {
    let ns = 0;
    for (const i of matches) ns += line.end[i] - line.start[i] - (line.free ? line.free[i] : 0);
    const at = match < 0 ? "" : `${page.format.count(match + 1)} of `;
    return `${at}${page.format.count(matches.length)} matches, ${page.format.time(ns)}`;
  }

  function next(by) {
    if (!matches.length) return;
    match = match < 0 ? (by > 0 ? 0 : matches.length - 1) : (match + by + matches.length) % matches.length;
    tools.status.textContent = counted();
    select(matches[match], true);
    zoomTo(matches[match], 8);
  }

  /** Find words in the time line shown, else in another one: mark all matches, zoom to the longest
   * and scroll to the chart. Returns whether there is one. */
  function locate(text) {
    const order = [...data.choices.keys()];
    const current = Number(tools.choice.value);
    order.sort((a, b) => Number(b === current) - Number(a === current));
    const index = order.find((each) => lineOf(each).search(text).length);
    if (index === undefined) return false;
    tools.search.value = text;
    if (index === current) search(text);
    else {
      tools.choice.value = index;
      choose(index);
    }
    const length = (i) => line.end[i] - line.start[i];
    match = matches.reduce((best, i, at) => (length(i) > length(matches[best]) ? at : best), 0);
    tools.status.textContent = counted();
    select(matches[match], true);
    zoomTo(matches[match], 2);
    host.scrollIntoView({ block: "start" });
    return true;
  }

  page.timeLine = { locate };

  /* ---- Pointer ---- */

  function eventAt(x, y) {
    const row = stage.rowAt(place.rows.filter(({ lane }) => lane), y);
    return row && x >= view.left() ? line.at(row.lane, view.timeAt(x), 2.5 / view.scale) : -1;
  }

  timelineView.drag(page, stage, view, {
    hover: (x, y, event) => hover(eventAt(x, y), event),
    click: (x, y) => select(eventAt(x, y), false),
    leave: (event) => hover(-1, event),
  });
  timelineView.wheel(page, stage, view);
  scroll.addEventListener("scroll", redraw);

  over.addEventListener("dblclick", (event) => {
    const [x, y] = stage.at(event);
    const i = eventAt(x, y);
    if (event.shiftKey) view.zoom(view.timeAt(x), 4);
    else if (i >= 0) zoomTo(i);
    else view.zoom(view.timeAt(x), 0.25);
  });

  function hover(i, event) {
    if (i >= 0) page.tooltip.show(event.clientX, event.clientY, timelineParts.describe(line, i, page, data.threads));
    else page.tooltip.hide();
    if (i === hovered) return;
    hovered = i;
    drawOver();
  }

  function mapTo(event) {
    const box = map.getBoundingClientRect();
    const time = ((event.clientX - box.left) / box.width) * line.length;
    view.pan(time - view.middle);
  }

  map.addEventListener("pointerdown", (event) => {
    map.setPointerCapture(event.pointerId);
    mapTo(event);
  });
  map.addEventListener("pointermove", (event) => event.buttons && mapTo(event));

  /* ---- Keyboard ---- */

  /** The next event of the lane, or the nearest of the lane above or below. */
  function step(sideways, down) {
    if (selected < 0) {
      const lane = place.rows.find((row) => row.lane && row.y >= scroll.scrollTop && row.lane.kind !== "idle");
      const [first, last] = lane ? line.between(lane.lane, view.from, view.to) : [0, 0];
      if (first < last) select(first, true);
      return;
    }
    const at = line.laneOf[selected];
    const lane = line.lanes[at];
    if (sideways) {
      const i = selected + sideways;
      if (i >= lane.first && i < lane.last) select(i, true);
      return;
    }
    const time = (Math.max(line.start[selected], view.from) + Math.min(line.end[selected], view.to)) / 2;
    for (let other = at + down; other >= 0 && other < line.lanes.length; other += down) {
      const i = line.at(line.lanes[other], time, Infinity);
      if (i >= 0) {
        select(i, true);
        return;
      }
    }
  }

  timelineView.keyboard(scroll, {
    ArrowLeft: (event) => (event.shiftKey ? view.pan(-view.length / 5) : step(-1, 0)),
    ArrowRight: (event) => (event.shiftKey ? view.pan(view.length / 5) : step(1, 0)),
    ArrowUp: () => step(0, -1),
    ArrowDown: () => step(0, 1),
    "+": () => acts.zoom(0.5),
    "=": () => acts.zoom(0.5),
    "-": () => acts.zoom(2),
    w: () => acts.zoom(0.5),
    s: () => acts.zoom(2),
    a: () => view.pan(-view.length / 5),
    d: () => view.pan(view.length / 5),
    f: () => selected >= 0 && zoomTo(selected),
    n: () => next(1),
    p: () => next(-1),
    Enter: () => selected >= 0 && zoomTo(selected),
    0: fit,
    Home: () => view.set(0, view.length),
    End: () => view.set(line.length - view.length, line.length),
    Escape: () => (selected >= 0 ? select(-1) : fit()),
    "/": () => tools.search.focus(),
  });

  page.onTheme(recolor);
  page.onResize(host, resize);
  restore();
});

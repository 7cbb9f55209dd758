/* The time line of a step: view, pointer, keyboard and selection. */
"use strict";

fastprof.define("timeline", (host, data, arrays, page) => {
  const { AXIS } = timelineDraw;
  const GUTTER = 96;
  const TALLEST = 620;
  const MAP = 30;
  const NARROWEST = 20; // ns in a view
  const HINT = "Select an event: click it, or focus the chart and press an arrow key.";

  const lines = new Map();
  let line, place, colors, shown;
  let view = [0, 1];
  let selected = -1;
  let matches = [];
  let isMatch = null;
  let match = -1;

  const acts = { choose, search, next, fit, zoom: (by) => zoomAt(center(), by) };
  const tools = timelineParts.tools(page, data, acts);
  const detail = timelineParts.detail(page, (i) => select(i, true));
  const map = page.element("canvas", "timeline-map");
  map.setAttribute("aria-hidden", "true");
  const scroll = page.element("div", "timeline-scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "application");
  scroll.setAttribute("aria-label", "Time line. Arrow keys move, W and S zoom, A and D pan, "
    + "Enter or F zooms to the selected event, N and P walk the matches of the search, Escape "
    + "clears, 0 shows all.");
  const stage = page.element("div", "timeline-stage");
  const under = page.element("canvas");
  const over = page.element("canvas", "timeline-over");
  const space = page.element("div");
  let key = page.element("div");
  stage.append(under, over);
  scroll.append(stage, space);
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
    const [step, find, view, event] = ["step", "find", "view", "event"].map(kept);
    const index = Number(step) < data.choices.length ? Number(step) : 0;
    tools.choice.value = index;
    tools.search.value = find || "";
    choose(index);
    const [from, to] = (view || "").split(":").map(Number);
    if (to > from) setView(from, to);
    else if (!data.choices[index].isStep) showIdle();
    if (event !== undefined && Number(event) < line.start.length) select(Number(event), !view);
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

  const left = () => (host.clientWidth >= 700 ? GUTTER : 0);
  const width = () => scroll.clientWidth;
  const scaleOf = () => (width() - left()) / (view[1] - view[0]);
  const timeAt = (x) => view[0] + (x - left()) / scaleOf();
  const xOf = (time) => left() + (time - view[0]) * scaleOf();

  function setView(from, to) {
    const [low, high] = line.bounds;
    const length = Math.min(Math.max(to - from, NARROWEST), high - low || NARROWEST);
    const middle = (from + to) / 2;
    const start = Math.min(Math.max(middle - length / 2, low), Math.max(high - length, low));
    view = [start, start + length];
    Object.assign(host.dataset, { from: view[0], to: view[1] });
    const isAll = view[0] <= 0 && view[1] >= line.length;
    keep("view", isAll ? null : `${Math.round(view[0])}:${Math.round(view[1])}`);
    redraw();
  }

  function fit() {
    setView(0, line.length);
  }

  function center() {
    if (selected < 0) return (view[0] + view[1]) / 2;
    const at = Math.min(Math.max((line.start[selected] + line.end[selected]) / 2, view[0]), view[1]);
    return at;
  }

  /** Zoom around a time, which keeps its place. */
  function zoomAt(time, by) {
    const length = view[1] - view[0];
    const wanted = Math.min(Math.max(length * by, NARROWEST), line.bounds[1] - line.bounds[0]);
    const share = (time - view[0]) / length;
    setView(time - share * wanted, time + (1 - share) * wanted);
  }

  const pan = (ns) => setView(view[0] + ns, view[1] + ns);

  function resize() {
    place = timelineDraw.layout(line, data.threads, left() > 0);
    const height = Math.min(place.height + AXIS, TALLEST, Math.max(window.innerHeight * 0.75, 240));
    scroll.style.height = `${height}px`;
    space.style.height = `${Math.max(place.height + AXIS - height, 0)}px`;
    redraw();
  }

  /* ---- Drawing ---- */

  let isDue = false;

  function redraw() {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      draw();
    });
  }

  function draw() {
    if (!width()) return;
    const began = performance.now();
    shown = { line, rows: place.rows, from: view[0], to: view[1], left: left(), width: width(),
      height: scroll.clientHeight, scroll: scroll.scrollTop, matches: isMatch };
    const context = timelineDraw.prepare(under, shown.width, shown.height);
    new timelineDraw.Drawing(context, colors, shown).all();
    const size = { width: host.clientWidth, height: MAP };
    timelineDraw.overview(map, colors, { ...shown, ...size });
    drawOver();
    host.dataset.milliseconds = (performance.now() - began).toFixed(1);
  }

  let hovered = -1;

  function boxOf(i) {
    const row = place.rowOf.get(line.lanes[line.laneOf[i]]);
    const y = row.y + AXIS - scroll.scrollTop;
    const x = xOf(line.start[i]);
    return { x, y, width: Math.max(xOf(line.end[i]) - x, 2), height: row.height };
  }

  function outline(context, i, color, thickness) {
    const { x, y, width: w, height } = boxOf(i);
    const begin = Math.max(x, left() - 4);
    const end = Math.min(x + w, width() + 4);
    if (end < begin || y + height < AXIS) return;
    context.strokeStyle = color;
    context.lineWidth = thickness;
    context.strokeRect(begin, y, end - begin, height);
  }

  function drawOver() {
    const context = timelineDraw.prepare(over, width(), scroll.clientHeight);
    context.clearRect(0, 0, width(), scroll.clientHeight);
    context.save();
    context.beginPath();
    context.rect(left(), AXIS, width() - left(), scroll.clientHeight);
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
    const room = scroll.clientHeight - AXIS - row.height;
    scroll.scrollTop = Math.min(Math.max(scroll.scrollTop, row.y - room), row.y - 4);
    const length = view[1] - view[0];
    const isInside = line.end[i] > view[0] && line.start[i] < view[1];
    if (!isInside) setView(line.start[i] - length / 2, line.start[i] + length / 2);
  }

  /** around: the time on each side, by the length of the event. */
  function zoomTo(i, around = 0.5) {
    const length = Math.max(line.end[i] - line.start[i], NARROWEST);
    setView(line.start[i] - around * length, line.end[i] + around * length);
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
    const row = place.rows.find((each) => each.lane && y - AXIS + scroll.scrollTop >= each.y - 1
      && y - AXIS + scroll.scrollTop < each.y + each.height + 1);
    if (!row || y < AXIS || x < left()) return -1;
    return line.at(row.lane, timeAt(x), 2.5 / scaleOf());
  }

  const local = (event) => {
    const box = over.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  let drag = null;

  over.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [x, y] = local(event);
    drag = { x, y, view, top: scroll.scrollTop, isMoved: false };
    over.setPointerCapture(event.pointerId);
  });

  over.addEventListener("pointermove", (event) => {
    const [x, y] = local(event);
    if (drag === null) {
      hover(eventAt(x, y), event);
      return;
    }
    drag.isMoved = drag.isMoved || Math.hypot(x - drag.x, y - drag.y) > 3;
    if (!drag.isMoved) return;
    page.tooltip.hide();
    over.style.cursor = "grabbing";
    const ns = (drag.x - x) / scaleOf();
    setView(drag.view[0] + ns, drag.view[1] + ns);
    if (event.pointerType === "mouse") scroll.scrollTop = drag.top + drag.y - y;
  });

  over.addEventListener("pointerup", (event) => {
    if (drag !== null && !drag.isMoved) select(eventAt(...local(event)), false);
    drag = null;
    over.style.cursor = "";
  });

  over.addEventListener("pointercancel", () => {
    drag = null;
    over.style.cursor = "";
  });

  over.addEventListener("pointerleave", (event) => hover(-1, event));

  over.addEventListener("dblclick", (event) => {
    const [x, y] = local(event);
    const i = eventAt(x, y);
    if (event.shiftKey) zoomAt(timeAt(x), 4);
    else if (i >= 0) zoomTo(i);
    else zoomAt(timeAt(x), 0.25);
  });

  function hover(i, event) {
    if (i >= 0) page.tooltip.show(event.clientX, event.clientY, timelineParts.describe(line, i, page, data.threads));
    else page.tooltip.hide();
    if (i === hovered) return;
    hovered = i;
    drawOver();
  }

  /* The wheel zooms while the chart has the focus or with Ctrl; else it scrolls the page. */
  scroll.addEventListener("wheel", (event) => {
    const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const isOwn = event.ctrlKey || event.metaKey || document.activeElement === scroll;
    if (!isSideways && !isOwn) return;
    event.preventDefault();
    page.tooltip.hide();
    const pixels = (event.deltaX || event.deltaY) * (event.deltaMode === 1 ? 16 : 1);
    if (isSideways) pan(pixels / scaleOf());
    else zoomAt(timeAt(local(event)[0]), Math.exp(event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.003)));
  }, { passive: false });

  scroll.addEventListener("scroll", redraw);

  function mapTo(event) {
    const box = map.getBoundingClientRect();
    const time = ((event.clientX - box.left) / box.width) * line.length;
    const half = (view[1] - view[0]) / 2;
    setView(time - half, time + half);
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
      const [first, last] = lane ? line.between(lane.lane, ...view) : [0, 0];
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
    const time = (Math.max(line.start[selected], view[0]) + Math.min(line.end[selected], view[1])) / 2;
    for (let other = at + down; other >= 0 && other < line.lanes.length; other += down) {
      const i = line.at(line.lanes[other], time, Infinity);
      if (i >= 0) {
        select(i, true);
        return;
      }
    }
  }

  const KEYS = {
    ArrowLeft: (event) => (event.shiftKey ? pan((view[0] - view[1]) / 5) : step(-1, 0)),
    ArrowRight: (event) => (event.shiftKey ? pan((view[1] - view[0]) / 5) : step(1, 0)),
    ArrowUp: () => step(0, -1),
    ArrowDown: () => step(0, 1),
    "+": () => acts.zoom(0.5),
    "=": () => acts.zoom(0.5),
    "-": () => acts.zoom(2),
    w: () => acts.zoom(0.5),
    s: () => acts.zoom(2),
    a: () => pan((view[0] - view[1]) / 5),
    d: () => pan((view[1] - view[0]) / 5),
    f: () => selected >= 0 && zoomTo(selected),
    n: () => next(1),
    p: () => next(-1),
    Enter: () => selected >= 0 && zoomTo(selected),
    0: fit,
    Home: () => setView(0, view[1] - view[0]),
    End: () => setView(line.length - (view[1] - view[0]), line.length),
    Escape: () => (selected >= 0 ? select(-1) : fit()),
    "/": () => tools.search.focus(),
  };

  scroll.addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(event);
  });

  page.onTheme(recolor);
  page.onResize(host, resize);
  restore();
});

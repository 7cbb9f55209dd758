/* The ranks of a run on one time line: view, pointer, keyboard, the instance pointed at. */
"use strict";

fastprof.define("lanes", (host, data, arrays, page) => {
  const { AXIS } = lanesDraw;
  const LEFT = 96;
  const { NARROWEST } = timelineView;
  const FEW = 24; // lanes that are shown without a click
  const HINT = "Point at a call or a wait to see it on all ranks; click it to keep it.";
  const { time } = page.format;

  const run = new lanesData.Run(data, arrays);
  const open = new Set();
  if (data.lanes.length <= FEW) run.ranks.forEach((_, place) => open.add(place));
  let colors, place;
  let shown = null; // { place, lane, i, instance }: what the pointer or the keyboard is at
  let isKept = false;

  host.classList.add("timeline");
  const bar = page.element("div", "timeline-tools");
  const choice = page.element("select");
  choice.setAttribute("aria-label", "Steps shown");
  const stage = new timelineView.Stage(page, "Time line of ranks. Left and right go to the next event, up and "
    + "down to the next lane, Enter opens a rank, W and S zoom, A and D pan, Escape clears, 0 shows all.");
  const { scroll, over } = stage;
  const view = new timelineView.View(stage, () => LEFT, () => [0, run.end], keepView);
  const redraw = timelineView.atNextFrame(draw);
  const detail = page.element("div", "timeline-detail");
  const text = page.element("div", "timeline-text");
  text.setAttribute("aria-live", "polite");
  const key = page.element("div", "timeline-key");
  detail.append(text);
  host.append(bar, scroll, detail, key);
  tools();

  function tools() {
    const option = (value, title) => {
      const made = page.element("option", "", title);
      made.value = value;
      choice.append(made);
    };
    option(-1, data.steps.length > 1 ? `steps ${data.steps[0].number} to ${data.steps.at(-1).number}` : "all");
    data.steps.forEach(({ number, start, end, isSlowest }, i) =>
      option(i, `step ${number}, ${time(end - start)}${isSlowest ? ", the slowest" : ""}`));
    choice.addEventListener("change", () => showStep(Number(choice.value)));
    const zoom = page.element("span", "timeline-zoom");
    zoom.append(
      page.button("−", "Zoom out", () => view.zoom(view.middle, 2)),
      page.button("+", "Zoom in", () => view.zoom(view.middle, 0.5)),
      page.button("Fit", "Show all of it", () => showStep(-1)),
      page.button("Open all", "Show the streams of all ranks", () => openAll(true)),
      page.button("Close all", "Show only the ranks", () => openAll(false)),
    );
    bar.append(choice, zoom);
  }

  /* ---- View ---- */

  function keepView() {
    const { from, to } = view;
    Object.assign(host.dataset, { from, to });
    const isAll = from <= 0 && to >= run.end;
    page.address.set(`${host.id}.view`, isAll ? null : `${Math.round(from)}:${Math.round(to)}`);
    redraw();
  }

  /** Show a step, -1 for all. */
  function showStep(i) {
    choice.value = i;
    if (i < 0) view.set(0, run.end);
    else view.set(data.steps[i].start, data.steps[i].end);
  }

  function openAll(isOpen) {
    run.ranks.forEach((_, each) => (isOpen ? open.add(each) : open.delete(each)));
    resize();
  }

  function toggle(each) {
    if (!open.delete(each)) open.add(each);
    resize();
  }

  function resize() {
    place = lanesDraw.layout(run, open);
    host.dataset.open = open.size;
    stage.resize(place.height);
    redraw();
  }

  function recolor() {
    colors = new lanesDraw.Colors(run, page.colors);
    legend();
    resize();
    draw(); // printing does not wait for a frame
  }

  function legend() {
    const ns = new Float64Array(run.kinds.length);
    run.pieces.kind.forEach((kind, i) => (ns[kind] += run.pieces.length[i]));
    const order = [...ns.keys()].filter((kind) => ns[kind] > 0).sort((a, b) => ns[b] - ns[a]);
    key.replaceChildren(...order.map((kind) => {
      const item = page.element("span", "timeline-swatch");
      const square = page.element("i");
      square.style.background = colors.kinds[kind];
      const isIdle = !["compute", "copies", "wait", "transfer"].includes(run.kinds[kind]);
      item.append(square, isIdle ? `idle: ${run.kinds[kind]}` : run.kinds[kind]);
      return item;
    }));
  }

  /* ---- Drawing ---- */

  function draw() {
    if (!stage.width) return;
    const began = performance.now();
    const size = { left: LEFT, width: stage.width, height: stage.height };
    const context = timelineDraw.prepare(stage.under, size.width, size.height);
    new lanesDraw.Drawing(context, colors, {
      run, rows: place.rows, open, from: view.from, to: view.to, scroll: scroll.scrollTop, ...size,
    }).all();
    drawOver();
    host.dataset.milliseconds = (performance.now() - began).toFixed(1);
  }

  function drawOver() {
    const context = timelineDraw.prepare(over, stage.width, stage.height);
    context.clearRect(0, 0, stage.width, stage.height);
    if (shown === null) return;
    context.save();
    context.beginPath();
    context.rect(LEFT, AXIS, stage.width - LEFT, stage.height);
    context.clip();
    if (shown.instance) drawInstance(context);
    const events = run.eventsOf(shown.lane);
    const row = place.of.get(shown.lane);
    if (row) outline(context, row, events.start[shown.i], events.end[shown.i], 2);
    context.restore();
  }

  function outline(context, row, from, to, thickness) {
    context.strokeStyle = colors.text;
    context.lineWidth = thickness;
    const begin = Math.max(view.x(from), LEFT - 4);
    const end = Math.min(view.x(to), stage.width + 4);
    if (end >= begin) context.strokeRect(begin, stage.topOf(row), Math.max(end - begin, 2), row.height);
  }

  /** A line through the arrivals of all ranks, another where the last one arrives. */
  function drawInstance(context) {
    const points = [];
    for (const [rank, lane, i] of run.callsOf(shown.instance)) {
      const row = place.of.get(lane) || place.of.get(run.ranks[rank].chain);
      outline(context, row, run.calls.start[i], run.calls.end[i], 1.5);
      points.push([view.x(run.calls.start[i]), stage.topOf(row) + row.height / 2]);
    }
    if (!points.length) return;
    context.strokeStyle = context.fillStyle = colors.text;
    context.lineWidth = 1.5;
    context.beginPath();
    points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.stroke();
    for (const [x, y] of points) {
      context.beginPath();
      context.arc(x, y, 3.5, 0, 2 * Math.PI);
      context.fill();
    }
    const last = view.x(run.instances.at[shown.instance - 1]);
    context.setLineDash([5, 4]);
    context.beginPath();
    context.moveTo(last, points[0][1] - 12);
    context.lineTo(last, points.at(-1)[1] + 12);
    context.stroke();
    context.setLineDash([]);
  }

  /* ---- What the pointer is at ---- */

  function lines({ place: rank, lane, i, instance }) {
    const events = run.eventsOf(lane);
    const length = events.end[i] - events.start[i];
    const who = `rank ${run.ranks[rank].number}, at ${time(events.start[i])}, for ${time(length)}`;
    if (lane.channel >= 0) {
      const [title, about] = run.signature(events.signature[i]);
      const own = `${who}: waits ${time(events.wait[i])}, then ${time(length - events.wait[i])}`;
      if (!instance) return [title, `${who}; it matches no call of another rank`, about].filter(Boolean);
      return [...run.instanceLines(instance, time), own];
    }
    const kind = run.kinds[events.kind[i]];
    if (instance) return [`${kind}: ${time(length)}`, ...run.instanceLines(instance, time), who];
    const text = run.texts[events.text[i]];
    const isWork = kind === "compute" || kind === "copies";
    const count = page.format.count(events.count[i]);
    const kernels = events.count[i] ? ` in ${count} ${kind === "copies" ? "copies" : "kernels"}` : "";
    return [
      `${isWork ? kind : `idle: ${kind}`} ${time(length)}${kernels}`,
      text && (isWork ? `most of it: ${text}` : text), who,
    ].filter(Boolean);
  }

  function show(found) {
    shown = found;
    text.replaceChildren(...(found ? lines(found) : []).map((each) => page.element("div", "", each)));
    if (!found) text.append(page.element("div", "timeline-hint", HINT));
    host.dataset.instance = found ? found.instance : 0;
    drawOver();
  }

  const found = (row, i) => (i < 0 ? null
    : { place: row.place, lane: row.lane, i, instance: run.eventsOf(row.lane).instance[i] });

  function eventAt(x, y) {
    const row = x < LEFT ? undefined : stage.rowAt(place.rows, y);
    return row ? found(row, run.at(row.lane, view.timeAt(x), 2.5 / view.scale)) : null;
  }

  function hover(x, y, event) {
    const now = eventAt(x, y);
    if (now) page.tooltip.show(event.clientX, event.clientY, lines(now));
    else page.tooltip.hide();
    over.style.cursor = x < LEFT && y >= AXIS ? "pointer" : "";
    if (!isKept) show(now);
  }

  function click(x, y) {
    const row = stage.rowAt(place.rows, y);
    if (x < LEFT && row) toggle(row.place);
    else keep(eventAt(x, y));
  }

  function leave() {
    page.tooltip.hide();
    if (!isKept) show(null);
  }

  timelineView.drag(page, stage, view, { hover, click, leave });
  timelineView.wheel(page, stage, view);
  scroll.addEventListener("scroll", redraw);

  function keep(now) {
    isKept = now !== null;
    show(now);
  }

  over.addEventListener("dblclick", (event) => {
    const [x] = stage.at(event);
    if (x >= LEFT) view.zoom(view.timeAt(x), event.shiftKey ? 4 : 0.25);
  });

  /* ---- Keyboard ---- */

  /** The next event of the lane, or the nearest of the lane above or below. */
  function step(sideways, down) {
    const at = shown ? place.rows.findIndex((row) => row.lane === shown.lane) : -1;
    const row = place.rows[at < 0 ? 0 : at + down];
    if (row === undefined) return;
    if (at < 0) keep(found(row, run.between(row.lane, view.from, view.to)[0]));
    else if (sideways) {
      const i = shown.i + sideways;
      if (i >= row.lane.first && i < row.lane.last) keep(found(row, i));
    } else {
      const events = run.eventsOf(shown.lane);
      const middle = (Math.max(events.start[shown.i], view.from) + Math.min(events.end[shown.i], view.to)) / 2;
      const next = found(row, run.at(row.lane, middle, Infinity));
      if (next) keep(next);
    }
    reveal();
  }

  /** Scroll and move the view until the event shown is inside. */
  function reveal() {
    if (shown === null) return;
    const row = place.of.get(shown.lane);
    const events = run.eventsOf(shown.lane);
    scroll.scrollTop = Math.min(Math.max(scroll.scrollTop, row.y - stage.height + AXIS + row.height), row.y - 2);
    const [from, to] = [events.start[shown.i], events.end[shown.i]];
    if (to <= view.from || from >= view.to) view.pan((from + to) / 2 - view.middle);
    redraw();
  }

  timelineView.keyboard(scroll, {
    ArrowLeft: () => step(-1, 0),
    ArrowRight: () => step(1, 0),
    ArrowUp: () => step(0, -1),
    ArrowDown: () => step(0, 1),
    w: () => view.zoom(view.middle, 0.5),
    s: () => view.zoom(view.middle, 2),
    "+": () => view.zoom(view.middle, 0.5),
    "-": () => view.zoom(view.middle, 2),
    a: () => view.pan(-view.length / 5),
    d: () => view.pan(view.length / 5),
    Enter: () => shown && toggle(shown.place),
    0: () => showStep(-1),
    Escape: () => keep(null),
  });

  /* ---- Findings ---- */

  /** Show the instance for which others wait longest for a rank, "rank 3". Returns whether there is
   * one on the time line. */
  function locate(words) {
    const number = Number(words.replace(/^rank /, ""));
    const { last, late, at } = run.instances;
    let best = -1;
    for (let i = 0; i < last.length; i++) {
      if (last[i] === number + 1 && (best < 0 || late[i] > late[best])) best = i;
    }
    const calls = best < 0 ? [] : run.callsOf(best + 1);
    if (!calls.length) return false;
    const [rank, lane, i] = calls.find(([each]) => run.ranks[each].number === number) || calls[0];
    open.add(rank);
    resize();
    const length = Math.max(late[best], run.instances.transfer[best], NARROWEST);
    view.set(at[best] - 1.5 * length, at[best] + 1.5 * length);
    keep({ place: rank, lane, i, instance: best + 1 });
    reveal();
    host.scrollIntoView({ block: "start" });
    return true;
  }

  page.timeLine = { locate };
  page.onTheme(recolor);
  page.onResize(host, resize);
  const [from, to] = (page.address.get(`${host.id}.view`) || "").split(":").map(Number);
  const slowest = data.steps.findIndex(({ isSlowest }) => isSlowest);
  if (to > from) view.set(from, to);
  else showStep(data.steps.length > 3 ? slowest : -1);
  keep(null);
  recolor();
});

/* An icicle of GPU time: the part in view, pointer, keyboard, search. */
"use strict";

fastprof.define("flame", (host, data, arrays, page) => {
  const { ROW } = flameDraw;
  const TALLEST = 560;
  const DURATION = 180; // ms of a zoom
  const HINT = "Click a part to zoom in, or focus the chart and press an arrow key.";

  const trees = data.views.map((view, i) =>
    new flameTree.Tree(view, (name) => arrays[`${name}${i}`]));
  const [[group]] = flameParts.groupsOf(trees[0]);
  const choice = { measure: trees[0].main, direction: null, group, isInverse: false, view: 0 };
  let [tree, places, colors] = [trees[0], null, null];
  let focus = 0; // the node in view
  let back = []; // nodes in view before
  let selected = -1;
  let hovered = -1;
  let matches = null;
  let match = -1;
  let view = [0, 1]; // of places
  let animation = null;

  const acts = {
    view: (i) => turn({ view: i }),
    order: (isInverse) => turn({ isInverse }),
    measure: (name) => rebuild({ measure: name }),
    direction: (name) => rebuild({ direction: name }),
    group: (name) => rebuild({ group: name }),
    search,
    next,
    back: goBack,
  };
  const tools = flameParts.tools(page, trees, acts);
  let crumbs = page.element("div");
  let key = page.element("div");
  const scroll = page.element("div", "flame-scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "application");
  scroll.setAttribute("aria-label", "Icicle of GPU time. Up and down arrows move between a part and "
    + "the parts inside it, left and right between parts of a row, Enter zooms in, Escape goes "
    + "back, 0 shows all.");
  const [under, over] = [page.element("canvas"), page.element("canvas", "flame-over")];
  const stage = page.element("div", "flame-stage");
  const space = page.element("div");
  stage.setAttribute("aria-hidden", "true"); // the selected part is text
  stage.append(under, over);
  scroll.append(stage, space);
  const detail = page.element("div", "flame-detail");
  detail.setAttribute("aria-live", "polite");
  host.classList.add("flame");
  host.append(tools.bar, crumbs, scroll, detail, key);

  /** Another tree, or the same one from inside to outside. */
  function turn(change) {
    Object.assign(choice, change);
    tree = choice.isInverse ? trees[choice.view].inverse() : trees[choice.view];
    forget();
    matches = tree.search(tools.search.value);
    keep("view", choice.view || null);
    keep("order", choice.isInverse ? "inverse" : null);
    rebuild();
  }

  /** Keep a part of the view in the address. */
  function keep(name, value) {
    page.address.set(`${host.id}.${name}`, value);
  }

  /** Restore the view that the address has; what does not fit the page is ignored. */
  function restore() {
    const kept = (name) => page.address.get(`${host.id}.${name}`);
    const [view, order, find, focused, chosen] = ["view", "order", "find", "focus", "node"].map(kept);
    const index = Number(view) < trees.length ? Number(view) : 0;
    tools.search.value = find || "";
    tools.show(index, order === "inverse");
    if (index || order) turn({ view: index, isInverse: order === "inverse" });
    else rebuild();
    if (find) search(find);
    const isNode = (text) => text !== undefined && Number(text) > 0 && Number(text) < tree.n;
    if (isNode(focused)) zoom(Number(focused));
    if (isNode(chosen)) select(Number(chosen));
  }

  function forget() {
    [focus, back, selected, hovered, match] = [0, [], -1, -1, -1];
  }

  /** New widths or colours; the part in view stays. */
  function rebuild(change = {}) {
    Object.assign(choice, change);
    places = tree.places(choice.measure, choice.direction);
    if (!isVisible(focus)) [focus, back] = [0, []];
    if (selected >= 0 && !isVisible(selected)) selected = -1;
    showFocus(false);
    recolor();
    showSelected();
    countMatches();
  }

  function recolor() {
    colors = new flameDraw.Colors(page.colors, tree, choice.group);
    const made = flameParts.key(page, colors);
    key.replaceWith(made);
    key = made;
    draw(); // printing does not wait for a frame
  }

  /* ---- Drawing ---- */

  let isDue = false;

  function redraw() {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame((now) => {
      isDue = false;
      step(now);
      draw();
    });
  }

  function draw() {
    const width = scroll.clientWidth;
    if (!width || colors === null) return;
    const began = performance.now();
    const context = flameDraw.prepare(under, width, scroll.clientHeight);
    const count = flameDraw.draw(context, colors, shown());
    Object.assign(host.dataset, {
      milliseconds: (performance.now() - began).toFixed(1), rectangles: count,
    });
    drawOver();
  }

  /** The height of the chart: that of the rows of the part in view. */
  function resize() {
    const [from, to] = [places.left[focus], places.right[focus]];
    const tall = flameDraw.rows({ ...shown(), from, to }) * ROW;
    const height = Math.min(tall, TALLEST, Math.max(window.innerHeight * 0.7, 240));
    scroll.style.height = `${height}px`;
    space.style.height = `${tall - height}px`;
    draw();
  }

  const shown = () => ({
    tree, places, matches, from: view[0], to: view[1], width: scroll.clientWidth,
    height: scroll.clientHeight, scroll: scroll.scrollTop, level: tree.level[focus],
  });

  function drawOver() {
    const context = flameDraw.prepare(over, scroll.clientWidth, scroll.clientHeight);
    if (hovered >= 0) flameDraw.outline(context, colors.text, 1.5, hovered, shown());
    if (selected < 0) return;
    flameDraw.outline(context, colors.text, 4, selected, shown());
    flameDraw.outline(context, colors.surface, 1.5, selected, shown());
  }

  /* ---- Part in view ---- */

  const widthOf = (node) => places.right[node] - places.left[node];
  const isVisible = (node) => widthOf(node) > 0;

  /** The widest part directly inside a node; -1 for none. */
  function widest(node) {
    let best = -1;
    for (let i = tree.starts[node]; i < tree.starts[node + 1]; i++) {
      const child = tree.children[i];
      if (isVisible(child) && (best < 0 || widthOf(child) > widthOf(best))) best = child;
    }
    return best;
  }

  function zoom(node) {
    if (!isVisible(node) || node === focus) return;
    back.push(focus);
    focus = node;
    showFocus(true);
  }

  function goBack() {
    if (back.length) focus = back.pop();
    else focus = Math.max(tree.parent[focus], 0);
    showFocus(true);
  }

  function reset() {
    back = [];
    focus = 0;
    showFocus(true);
  }

  function showFocus(isMoving) {
    const to = [places.left[focus], places.right[focus]];
    animation = isMoving && !page.isReducedMotion() ? { from: view, to, began: null } : null;
    if (animation === null) view = to;
    const made = flameParts.crumbs(page, tree, focus, (node) => {
      zoom(node);
      select(node);
    });
    crumbs.replaceWith(made);
    crumbs = made;
    keep("focus", focus || null);
    tools.back.disabled = focus === 0 && !back.length;
    host.dataset.focus = tree.chain(focus).slice(1).map((node) => tree.name(node)).join("\n");
    resize();
    revealRow(branch(focus), 2);
    redraw();
  }

  /** The outermost node inside which no part has nearly all of the width. */
  function branch(node) {
    for (;;) {
      const child = widest(node);
      if (child < 0 || widthOf(child) < 0.9 * widthOf(node)) return node;
      node = child;
    }
  }

  function step(now) {
    if (animation === null) return;
    animation.began = animation.began === null ? now : animation.began;
    const part = Math.min((now - animation.began) / DURATION, 1);
    const eased = 1 - (1 - part) ** 3;
    view = animation.from.map((from, i) => from + (animation.to[i] - from) * eased);
    if (part === 1) [view, animation] = [animation.to, null];
    else redraw();
  }

  /** Scroll until the row of a node and some rows around it are visible. */
  function revealRow(node, around) {
    const y = tree.level[node] * ROW;
    const top = Math.max(y - around * ROW, 0);
    const bottom = y + (around + 1) * ROW - scroll.clientHeight;
    if (scroll.scrollTop > top || scroll.scrollTop < bottom) scroll.scrollTop = top;
  }

  /* ---- Selection and search ---- */

  function select(node) {
    selected = node;
    keep("node", node > 0 ? node : null);
    showSelected();
    if (node >= 0) revealRow(node, 1);
    redraw();
  }

  function showSelected() {
    if (selected < 0) {
      detail.replaceChildren(page.element("div", "flame-hint", HINT));
      delete host.dataset.selected;
      return;
    }
    const lines = flameParts.describe(tree, selected, page, choice);
    detail.replaceChildren(...lines.map((line) => page.element("div", "", line)));
    host.dataset.selected = tree.chain(selected).slice(1).map((node) => tree.name(node)).join("\n");
  }

  function search(text) {
    keep("find", text.trim());
    matches = tree.search(text);
    match = -1;
    countMatches();
    redraw();
  }

  /** The number of matches, and their share; a match inside another counts once. */
  function countMatches() {
    tools.status.textContent = "";
    if (matches === null) return;
    let sum = 0;
    for (const node of matches.outermost) {
      sum += tree.value(choice.measure, node, choice.direction) || 0;
    }
    const total = tree.value(choice.measure, 0, choice.direction);
    const at = match < 0 ? "" : `${page.format.count(match + 1)} of `;
    const format = choice.measure === "flops" ? page.format.flops : page.format.time;
    const plural = matches.count === 1 ? "match" : "matches";
    tools.status.textContent = `${at}${page.format.count(matches.count)} ${plural}, ${format(sum)}, `
      + `${page.format.percent(total ? sum / total : NaN)} of all`;
  }

  /** Select the next match; if it is not visible, all comes into view. */
  function next(by) {
    if (matches === null || !matches.count) return;
    let node = selected >= 0 ? selected : 0;
    do {
      node = (node + by + tree.n) % tree.n;
    } while (!matches.is[node]);
    match = matches.is.subarray(0, node).reduce((count, each) => count + each, 0);
    if (places.left[node] >= view[1] || places.right[node] <= view[0]) reset();
    select(node);
    countMatches();
  }

  /* ---- Pointer ---- */

  function nodeAt(event) {
    const box = over.getBoundingClientRect();
    const place = view[0] + ((event.clientX - box.left) / box.width) * (view[1] - view[0]);
    const row = Math.floor((event.clientY - box.top + scroll.scrollTop) / ROW);
    return row < 0 ? -1 : flameTree.nodeAt(tree, places, row, place);
  }

  function hover(node, event) {
    if (node >= 0) {
      page.tooltip.show(event.clientX, event.clientY, flameParts.describe(tree, node, page, choice));
    } else {
      page.tooltip.hide();
    }
    if (node === hovered) return;
    hovered = node;
    drawOver();
  }

  over.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "touch") hover(nodeAt(event), event);
  });
  over.addEventListener("pointerleave", (event) => hover(-1, event));
  over.addEventListener("click", (event) => {
    const node = nodeAt(event);
    if (node < 0) return;
    page.tooltip.hide();
    select(node);
    zoom(node);
  });
  scroll.addEventListener("scroll", redraw);

  /* ---- Keyboard ---- */

  /** The nearest part of the same row with a width, in a direction. */
  function sideways(by) {
    const level = tree.level[selected];
    const place = by > 0 ? places.right[selected] : places.left[selected];
    let best = -1;
    for (let i = 0; i < tree.n; i++) {
      if (tree.level[i] !== level || !isVisible(i) || i === selected) continue;
      const isBeyond = by > 0 ? places.left[i] >= place : places.right[i] <= place;
      if (!isBeyond || places.right[i] <= view[0] || places.left[i] >= view[1]) continue;
      if (best < 0 || (by > 0 ? places.left[i] < places.left[best] : places.right[i] > places.right[best])) best = i;
    }
    return best;
  }

  function move(find) {
    if (selected < 0) {
      select(focus);
      return;
    }
    const node = find();
    if (node < 0) return;
    if (places.left[node] < view[0] || places.right[node] > view[1]) zoom(node);
    select(node);
  }

  const KEYS = {
    ArrowUp: () => move(() => tree.parent[selected]),
    ArrowDown: () => move(() => widest(selected)),
    ArrowLeft: () => move(() => sideways(-1)),
    ArrowRight: () => move(() => sideways(1)),
    Enter: () => selected >= 0 && zoom(selected),
    "+": () => selected >= 0 && zoom(selected),
    "-": () => zoom(Math.max(tree.parent[focus], 0)),
    Escape: goBack,
    Backspace: goBack,
    0: reset,
    "/": () => tools.search.focus(),
  };

  scroll.addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });

  page.onTheme(recolor);
  page.onResize(host, resize);
  restore();
});

/* The elements around an icicle: tools, path of the part in view, text of a part, colours. */
"use strict";

const flameParts = (() => {
  const MEASURES = [
    ["after_ns", "After", "time"],
    ["before_ns", "Before", "time"],
    ["ns", "GPU time", "time"],
    ["step_ns", "GPU time per step", "time"],
    ["lost_ns", "Lost time", "time"],
    ["flops", "FLOPs", "flops"],
  ];
  const DIRECTIONS = [
    ["", "All work"], ["forward", "Forward"], ["backward", "Backward"], ["other", "Other"],
  ];
  const GROUPS = [
    ["kind", "Colour: kind of kernel"], ["phase", "Colour: phase"], ["change", "Colour: change"],
  ];

  /** The colours that a tree has. */
  const groupsOf = (tree) => GROUPS.filter(([name]) =>
    (name === "change" ? tree.has("after_ns") : tree.view[`${name}s`].length > 0));

  /** Lines of text about a node: the first is its name. choice: { measure, direction }. */
  function describe(tree, node, page, choice) {
    const { format } = page;
    const [measure, title, unit] = MEASURES.find(([each]) => each === choice.measure);
    const value = (name, direction = null, i = node) => tree.value(name, i, direction);
    const chosen = (i) => value(measure, choice.direction, i);
    const share = (i) => format.percent(chosen(i) ? chosen(node) / chosen(i) : NaN);
    const of = choice.direction === null ? title : `${title}, ${choice.direction}`;
    const above = tree.parent[node];
    const shares = [`${share(0)} of all`];
    if (above > 0) shares.push(`${share(above)} of ${tree.label(above)}`);
    const type = tree.type(node);
    const lines = [node === 0 ? "all GPU work" : tree.name(node)];
    lines.push(`${of}: ${format[unit](chosen(node))}, ${shares.join(", ")}`);
    if (tree.has("after_ns")) lines.push(changed(tree, node, format));
    const parts = flameTree.DIRECTIONS.filter((each) => value("ns", each) > 0)
      .map((each) => `${each} ${format.time(value("ns", each))}`);
    if (tree.has("ns") && (measure !== "ns" || choice.direction !== null)) parts.unshift(`GPU time ${format.time(value("ns"))}`);
    lines.push(parts.join(" · "));
    const counts = [
      [value("calls"), "calls"], [value("kernels"), "kernels"],
    ].filter(([n]) => !Number.isNaN(n)).map(([n, unit]) => `${format.count(n)} ${n === 1 ? unit.slice(0, -1) : unit}`);
    if (measure !== "flops") counts.push(known(value("flops"), format.flops));
    if (measure !== "lost_ns") counts.push(known(value("lost_ns"), (n) => `lost ${format.time(n)}`));
    counts.push(known(value("bytes"), (n) => `${format.bytes(n)} moved`));
    if (tree.has("after_ns")) counts.length = 0;
    lines.push([node === 0 || type === "smaller" ? "" : type, ...counts].filter(Boolean).join(" · "));
    const groups = GROUPS.map(([group]) => tree.group(group, node)).filter(Boolean);
    if (groups.length) lines.push(`mostly ${groups.join(", ")}`);
    return lines.filter(Boolean);
  }

  function changed(tree, node, { time, percent }) {
    const [was, is] = ["before_ns", "after_ns"].map((name) => tree.value(name, node) || 0);
    const sign = is >= was ? "+" : "−";
    const share = was > 0 ? `, ${sign}${percent(Math.abs(is - was) / was)}` : "";
    return `${time(was)} → ${time(is)}: ${sign}${time(Math.abs(is - was))}${share}`;
  }

  const known = (value, text) => (Number.isNaN(value) ? "" : text(value));

  function choice(page, label, options, act) {
    const made = page.element("select");
    made.setAttribute("aria-label", label);
    options.forEach(([value, text]) => {
      const option = page.element("option", "", text);
      option.value = value;
      made.append(option);
    });
    made.addEventListener("change", () => act(made.value));
    made.hidden = options.length < 2;
    return made;
  }

  const ORDERS = [["", "Outermost first"], ["inverse", "Kernels first"]];

  /** Choices of tree, order, width, direction and colours; search; back.
   *
   * acts: view(i), order(isInverse), measure(name), direction(name or null), group(name), search(text), next(by),
   * back() */
  function tools(page, trees, acts) {
    const bar = page.element("div", "flame-tools");
    const measures = MEASURES.filter(([name]) => trees.some((tree) =>
      tree.has(name) && tree.value(name, 0) > 0));
    const directions = DIRECTIONS.filter(([name]) => !name || trees[0].value("ns", 0, name) > 0);
    const search = page.element("input");
    search.type = "search";
    search.placeholder = "Search names";
    search.setAttribute("aria-label", "Search names; Enter goes to the next match");
    search.addEventListener("input", () => acts.search(search.value));
    search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      acts.next(event.shiftKey ? -1 : 1);
    });
    const status = page.element("span", "flame-status");
    status.setAttribute("role", "status");
    const back = page.button("Back", "Back to the part in view before", acts.back);
    const rows = choice(page, "Rows", trees.map((tree, i) => [i, tree.title]),
      (i) => acts.view(Number(i)));
    const order = choice(page, "Order", ORDERS, (name) => acts.order(name === "inverse"));
    bar.append(
      rows, order,
      choice(page, "Width", measures, acts.measure),
      choice(page, "Direction", directions.length > 2 ? directions : DIRECTIONS.slice(0, 1),
        (name) => acts.direction(name || null)),
      choice(page, "Colour", groupsOf(trees[0]), acts.group),
      search, back, status,
    );
    /** Show what is chosen. */
    function show(index, isInverse) {
      rows.value = index;
      order.value = isInverse ? "inverse" : "";
    }
    return { bar, search, status, back, show };
  }

  const OUTER = 2; // names in the path of a part in view
  const INNER = 7;

  /** The names from all to a node, each a button that brings it into view; long paths are cut in
   * their middle. */
  function crumbs(page, tree, node, act) {
    const list = page.element("div", "flame-crumbs");
    list.setAttribute("role", "group");
    list.setAttribute("aria-label", "Part in view");
    const chain = tree.chain(node);
    chain.forEach((each, i) => {
      if (i >= OUTER && i < chain.length - INNER) {
        if (i === OUTER) list.append(page.element("span", "", "› …"));
        return;
      }
      const made = page.element("button", "", each === 0 ? "all" : tree.label(each));
      made.type = "button";
      made.title = tree.name(each);
      if (i === chain.length - 1) made.setAttribute("aria-current", "true");
      made.addEventListener("click", () => act(each));
      list.append(made);
    });
    return list;
  }

  /** The phases or kinds of the tree with their colours. */
  function key(page, colors) {
    const list = page.element("div", "flame-key");
    const used = new Set(colors.ids);
    const entries = colors.names.map((name, id) => [name, colors.fills[id], used.has(id)])
      .filter(([, , isUsed]) => isUsed);
    if (used.has(-1)) entries.push(["mixed: none has half of the time", colors.mixed]);
    for (const [name, color] of entries) {
      const item = page.element("span", "flame-swatch");
      const square = page.element("i");
      square.style.background = color;
      item.append(square, name);
      list.append(item);
    }
    return list;
  }

  return { crumbs, describe, groupsOf, key, tools };
})();

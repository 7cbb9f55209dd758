/* The change of a step from before to after: a bar per part. */
"use strict";

fastprof.define("waterfall", (host, data, arrays, page) => {
  const SVG = "http://www.w3.org/2000/svg";
  const ROW = 26;
  const { format } = page;
  const hasWhole = data.before !== null;
  const items = bars();
  let selected = -1;

  /** Start and end of each bar, ns, with its texts. */
  function bars() {
    const found = [];
    let at = hasWhole ? data.before : 0;
    if (hasWhole) found.push({ name: "before", from: 0, to: at, kind: "whole", value: format.time(at) });
    arrays.delta.forEach((delta, i) => {
      const error = arrays.error[i];
      found.push({
        name: data.names[i], why: data.why[i], row: arrays.row[i], from: at, to: at + delta, error,
        kind: delta > 0 ? "slower" : "faster", value: signed(delta),
      });
      at += delta;
    });
    if (!hasWhole) return found;
    const rest = data.after - at;
    if (Math.abs(rest) >= 1) {
      const kind = rest > 0 ? "slower" : "faster";
      found.push({ name: "all other parts", from: at, to: data.after, kind, value: signed(rest) });
    }
    found.push({ name: "after", from: 0, to: data.after, kind: "whole", value: format.time(data.after) });
    return found;
  }

  function signed(ns) {
    return `${ns > 0 ? "+" : "−"}${format.time(Math.abs(ns))}`;
  }

  function lines(item) {
    const error = item.error >= 0 ? `, standard error ${format.time(item.error)}` : "";
    return [item.name, `${item.value}${error}`, item.why].filter(Boolean);
  }

  function shape(tag, attributes, text = "") {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text) made.textContent = text;
    return made;
  }

  /** The scale: the whole step if the changes are visible in it, else only the part that changes. */
  function span() {
    const ends = items.flatMap((each) => [each.from, each.to]);
    const moved = items.filter((each) => each.kind !== "whole").flatMap((each) => [each.from, each.to]);
    const high = Math.max(...ends, 0);
    const low = Math.min(...moved, high);
    const isSmall = hasWhole && Math.max(...moved) - low < high / 4;
    const start = isSmall ? Math.max(0, low - (Math.max(...moved) - low)) : Math.min(...ends, 0);
    return [start, high + (high - start) * 0.02];
  }

  function draw() {
    const width = Math.max(host.clientWidth - 2, 280);
    const labels = Math.min(width * 0.38, 440);
    const values = 84;
    const [low, high] = span();
    const x = (ns) => labels + 8 + (Math.max(ns, low) - low) / (high - low || 1) * (width - labels - values - 16);
    const fits = Math.floor(labels / 7.2);
    const svg = shape("svg", { viewBox: `0 0 ${width} ${items.length * ROW + 28}`, "aria-hidden": "true" });
    items.forEach((item, i) => {
      const top = 6 + i * ROW;
      const [left, right] = [x(Math.min(item.from, item.to)), x(Math.max(item.from, item.to))];
      const band = shape("rect", { x: 0, y: top, width, height: ROW, class: "band" });
      if (i === selected) band.classList.add("selected");
      const name = page.cut(item.name, fits);
      svg.append(
        band,
        shape("text", { x: labels, y: top + 17, "text-anchor": "end" }, name),
        shape("rect", {
          x: left, y: top + 4, width: Math.max(right - left, 1), height: ROW - 8, rx: 2,
          class: item.kind,
        }),
        shape("text", { x: width - 4, y: top + 17, "text-anchor": "end" }, item.value));
      if (i + 1 < items.length && hasWhole) {
        const at = x(item.to);
        svg.append(shape("line", { x1: at, x2: at, y1: top + ROW - 4, y2: top + ROW + 4, class: "link" }));
      }
      if (item.error > 0) {
        const middle = top + ROW / 2;
        svg.append(shape("line", {
          x1: x(item.to - item.error), x2: x(item.to + item.error), y1: middle, y2: middle, class: "error",
        }));
      }
    });
    svg.append(shape("line", { x1: x(low), x2: x(low), y1: 2, y2: items.length * ROW + 10, class: "axis" }));
    svg.append(shape("text", { x: x(low), y: items.length * ROW + 22, class: "start" },
      low === 0 ? "0" : format.time(low)));
    host.replaceChildren(svg, status);
  }

  function select(i) {
    if (i === selected) return;
    selected = i;
    status.textContent = i < 0 ? "" : lines(items[i]).join(" · ");
    host.querySelectorAll(".band").forEach((each, j) => each.classList.toggle("selected", j === i));
  }

  function reveal() {
    const table = page.tables.get(data.table);
    if (selected >= 0 && items[selected].row !== undefined && table) table.reveal(items[selected].row);
  }

  function at(event) {
    const i = Math.floor((event.clientY - host.getBoundingClientRect().top - 6) / ROW);
    return i >= 0 && i < items.length ? i : -1;
  }

  const status = page.element("p", "plot-text");
  status.setAttribute("aria-live", "polite");
  host.classList.add("waterfall");
  host.tabIndex = 0;
  host.setAttribute("role", "application");
  host.setAttribute("aria-label",
    "Bars of the change of each part. Arrow keys select, Enter shows the row of the table.");
  draw();
  page.onResize(host, draw);
  host.addEventListener("mousemove", (event) => {
    const i = at(event);
    select(i);
    if (i < 0) page.tooltip.hide();
    else page.tooltip.show(event.clientX, event.clientY, lines(items[i]));
  });
  host.addEventListener("mouseleave", () => page.tooltip.hide());
  host.addEventListener("click", reveal);
  host.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) select(Math.min(Math.max(selected + step, 0), items.length - 1));
    else if (event.key === "Enter") reveal();
    else if (event.key === "Escape") select(-1);
    else return;
    event.preventDefault();
  });
});

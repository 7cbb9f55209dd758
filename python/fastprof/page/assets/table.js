/* Sortable, searchable, foldable tables. The page holds their first rows; the data has all rows.
 * data: rows, first, columns [{key, text, values, size, decimals}], tree, names.
 * arrays: ids0.. and numbers0.. by column; depth and name of each row of a tree. */
"use strict";

fastprof.define("table", (host, data, arrays, page) => {
  const STEP = 250, UNFOLDED = 40;
  const { columns } = data;
  const table = host.querySelector("table");
  const body = table.tBodies[0];
  const hasTree = data.tree !== undefined;
  const all = Int32Array.from({ length: data.rows }, (_, row) => row);
  let order = all;
  let visible = data.first;
  let sorted = null;
  let wanted = "";

  /* Fold: rows are in depth-first order. */
  const open = new Uint8Array(data.rows);
  const isParent = (row) =>
    row + 1 < data.rows && arrays.depth[row + 1] > arrays.depth[row];

  function unfoldLevels() {
    let level = 0;
    const within = (most) => arrays.depth.reduce((n, depth) => n + (depth <= most), 0);
    const deepest = arrays.depth.reduce((most, depth) => Math.max(most, depth), 0);
    while (level < deepest && within(level + 1) <= UNFOLDED) level++;
    for (let row = 0; row < data.rows; row++) open[row] = arrays.depth[row] < level ? 1 : 0;
  }

  function unfolded() {
    const rows = [];
    let hidden = Infinity;  // rows deeper than this are inside a folded row
    for (let row = 0; row < data.rows; row++) {
      if (arrays.depth[row] > hidden) continue;
      hidden = open[row] ? Infinity : arrays.depth[row];
      rows.push(row);
    }
    return Int32Array.from(rows);
  }

  const isTree = () => hasTree && sorted === null && !wanted;

  function cellText(column, i, row) {
    const ids = arrays[`ids${i}`];
    if (ids !== undefined) return ids[row] < 0 ? null : column.values[ids[row]];
    const value = arrays[`numbers${i}`][row];
    if (Number.isNaN(value)) return null;
    return column.decimals === null ? String(value) : (value / column.size).toFixed(column.decimals);
  }

  function cell(column, i, row) {
    const made = page.element("td", column.text ? "" : "number");
    const text = cellText(column, i, row);
    if (text === null) {
      made.classList.add("unknown");
      made.textContent = "na";
    } else if (!column.text) {
      made.textContent = text;
      const value = arrays[`numbers${i}`][row];
      made.dataset.value = value;
      if (column.key === "share" && value > 0) {
        const percent = `${Math.min(100, 100 * value).toFixed(1)}%`;
        made.style.background =
          `linear-gradient(to left, var(--accent-soft) ${percent}, transparent ${percent})`;
      }
    } else if (i === data.tree && isTree()) {
      made.append(...branch(row));
      made.title = text;
    } else {
      made.append(page.element(column.key === "code" ? "code" : "bdi", "", text));
      if (column.style) made.className = column.style;
      if (text.length > 40 && column.style !== "prose") made.title = text;
    }
    return made;
  }

  /** Name of a row of the tree, indented, with a button that folds it. */
  function branch(row) {
    const indent = page.element("span", "indent");
    indent.style.width = `${1.1 * arrays.depth[row]}em`;
    const name = page.element("bdi", "", data.names[arrays.name[row]]);
    if (!isParent(row)) return [indent, page.element("span", "leaf"), name];
    const button = page.element("button", "fold", open[row] ? "▾" : "▸");
    button.type = "button";
    button.setAttribute("aria-expanded", String(Boolean(open[row])));
    button.setAttribute("aria-label", `${open[row] ? "Fold" : "Unfold"} ${name.textContent}`);
    button.addEventListener("click", () => {
      open[row] = 1 - open[row];
      update();
      const again = body.querySelector(`tr[data-row="${row}"] .fold`);
      if (again !== null) again.focus();
    });
    return [indent, button, name];
  }

  /* Columns whose texts find the kernels, or the idle time, of a row on the time line. */
  const FOUND_BY = ["kernel", "op", "layer", "shape", "line", "cause", "path"];
  const finding = document.querySelector("[data-script='timeline']") === null ? []
    : [...columns.keys()].filter((i) => FOUND_BY.includes(columns[i].key) && columns[i].text);

  /** The words of a row; stars of equal layers match anything, of a path only its end is used. */
  function wordsOf(row) {
    const texts = finding.map((i) => cellText(columns[i], i, row)).filter(Boolean);
    return texts.map((text) => text.split(" › ").at(-1).replaceAll("*", " ")).join(" ");
  }

  body.addEventListener("click", (event) => {
    const made = event.target.closest("tr.located");
    if (made === null || event.target.closest("button") || !getSelection().isCollapsed) return;
    if (!page.timeLine.locate(wordsOf(Number(made.dataset.row)))) {
      page.tooltip.show(event.clientX, event.clientY, ["Not in the steps of the time line."]);
      setTimeout(page.tooltip.hide, 2000);
    }
  });

  function line(row) {
    const made = page.element("tr", finding.length ? "located" : "");
    if (finding.length) made.title = "Show on the time line";
    made.dataset.row = row;
    made.append(...columns.map((column, i) => cell(column, i, row)));
    return made;
  }

  function render() {
    body.replaceChildren(...Array.from(order.subarray(0, visible), line));
    const rest = order.length - body.rows.length;
    more.hidden = rest <= 0;
    more.textContent = rest === 1 ? "Show the last row"
      : rest <= STEP ? `Show the other ${rest} rows`
        : `Show ${STEP} of ${page.format.count(rest)} other rows`;
    fit();
    status.textContent = wanted
      ? `${page.format.count(order.length)} of ${page.format.count(data.rows)} rows match` : "";
  }

  const NARROWEST = 120; // pixels of a column of texts
  const region = host.querySelector(".scroll");

  /** Narrow the widest columns of texts, then all, until the table fits its place. */
  function fit() {
    table.style.removeProperty("--widest");
    table.classList.remove("tight");
    if (!narrow()) {
      table.style.removeProperty("--widest");
      table.classList.add("tight");
      narrow();
    }
  }

  /** Returns whether the table fits then. */
  function narrow() {
    let left = region.scrollWidth - region.clientWidth;
    if (!region.clientWidth || left <= 0) return true;
    const widths = headers.filter((_, i) => columns[i].text)
      .map((header) => header.offsetWidth).sort((a, b) => b - a);
    let widest = widths[0];
    for (let n = 1; n <= widths.length && left > 0; n++) {
      const next = Math.max(n < widths.length ? widths[n] : 0, NARROWEST);
      const taken = Math.min(left, n * Math.max(widest - next, 0));
      widest -= taken / n;
      left -= taken;
    }
    table.style.setProperty("--widest", `${Math.floor(widest)}px`);
    return left <= 0;
  }

  function update() {
    order = wanted ? all.filter(matches()) : all;
    if (sorted !== null) order = order.slice().sort(comparison());
    else if (isTree()) {
      order = unfolded();
      visible = Math.max(visible, Math.min(order.length, UNFOLDED));
    }
    render();
  }

  /** Order by the sorted column: unknown last, equal rows in their first order. */
  function comparison() {
    const { i, ascending } = sorted;
    const keys = arrays[`numbers${i}`] || ranks(columns[i].values, arrays[`ids${i}`]);
    const sign = ascending ? 1 : -1;
    return (a, b) => {
      const unknown = Number.isNaN(keys[a]) - Number.isNaN(keys[b]);
      return unknown || sign * (keys[a] - keys[b]) || a - b;
    };
  }

  function ranks(values, ids) {
    const rank = new Float64Array(values.length);
    values.map((_, id) => id).sort((a, b) => (values[a] < values[b] ? -1 : 1))
      .forEach((id, place) => (rank[id] = place));
    return Float64Array.from(ids, (id) => (id < 0 ? NaN : rank[id]));
  }

  /** Whether the texts of a row contain all words. */
  function matches() {
    const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
    const texts = columns.map(({ text, values }) => text && values.map((each) => each.toLowerCase()));
    const has = (word, row) => texts.some((values, i) => {
      const id = values ? arrays[`ids${i}`][row] : -1;
      return id >= 0 && values[id].includes(word);
    });
    return (row) => words.every((word) => has(word, row));
  }

  /** Sort by a column; null restores the first order. */
  function sort(i, ascending = Boolean(columns[i] && columns[i].text)) {
    sorted = i === null ? null : { i, ascending };
    headers.forEach((header, j) => {
      if (j === i) header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      else header.removeAttribute("aria-sort");
    });
    page.address.set(`${host.id}.sort`, i === null ? null : `${columns[i].key}:${Number(ascending)}`);
    update();
  }

  function search(text) {
    wanted = text.trim();
    if (input.value !== text) input.value = text;
    page.address.set(`${host.id}.find`, wanted);
    update();
  }

  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, i) => {
    const button = page.element("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    // Largest first, then smallest first, then the first order.
    button.addEventListener("click", () => {
      const first = Boolean(columns[i].text);
      if (sorted === null || sorted.i !== i) sort(i, first);
      else if (sorted.ascending === first) sort(i, !first);
      else sort(null);
    });
  });

  const title = host.querySelector("h3");
  const input = page.element("input");
  input.type = "search";
  input.placeholder = "Search";
  input.setAttribute("aria-label", `Search ${title.textContent}`);
  input.addEventListener("input", () => search(input.value));
  const status = page.element("span", "status");
  status.setAttribute("role", "status");
  const more = page.element("button", "more");
  more.type = "button";
  more.addEventListener("click", () => {
    visible += STEP;
    render();
  });
  const tools = page.element("div", "tools");
  title.before(tools);
  tools.append(title);
  if (data.rows > data.first && columns.some((column) => column.text)) tools.append(status, input);
  region.after(more);
  page.onResize(host, fit);
  if (hasTree) unfoldLevels();
  update();
  const [key, ascending] = (page.address.get(`${host.id}.sort`) || "").split(":");
  const place = columns.findIndex((each) => each.key === key);
  if (place >= 0) sort(place, ascending === "1");
  if (page.address.get(`${host.id}.find`)) search(page.address.get(`${host.id}.find`));

  page.tables.set(host.id, {
    search,
    sort: (key, ascending) => sort(columns.findIndex((each) => each.key === key), ascending),
    /** Show, mark and scroll to a row, counted in the order of the Table. */
    reveal(row) {
      wanted = "";
      if (sorted === null && hasTree) sorted = { i: data.tree, ascending: true };
      search("");
      visible = Math.max(visible, order.indexOf(row) + 1);
      render();
      const found = body.querySelector(`tr[data-row="${row}"]`);
      found.classList.add("marked");
      found.scrollIntoView({ block: "center" });
    },
  });
});

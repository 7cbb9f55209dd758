/* Sortable, searchable tables. The page holds their first rows; all rows are in the data. */
"use strict";

fastprof.define("table", (host, data, arrays, page) => {
  const STEP = 200;
  const { columns } = data;
  const table = host.querySelector("table");
  const body = table.tBodies[0];
  const original = Int32Array.from({ length: data.rows }, (_, row) => row);
  let order = original;
  let visible = Math.min(data.first, data.rows);
  let sorted = null;
  let wanted = "";

  function cellText(column, i, row) {
    const value = arrays[i][row];
    if (column.text) return value < 0 ? null : column.values[value];
    if (Number.isNaN(value)) return null;
    return column.decimals === null ? String(value) : (value / column.size).toFixed(column.decimals);
  }

  function cell(column, i, row) {
    const made = page.element("td", column.text ? "" : "number");
    const text = cellText(column, i, row);
    if (text === null) {
      made.classList.add("unknown");
      made.textContent = "na";
    } else if (column.text) {
      made.append(page.element("bdi", "", text));
      made.title = text;
    } else {
      made.textContent = text;
      made.dataset.value = arrays[i][row];
    }
    return made;
  }

  function line(row) {
    const made = page.element("tr");
    made.append(...columns.map((column, i) => cell(column, i, row)));
    made.dataset.row = row;
    return made;
  }

  function render() {
    body.replaceChildren(...Array.from(order.subarray(0, visible), line));
    const rest = order.length - body.rows.length;
    more.hidden = rest <= 0;
    more.textContent = `Show ${Math.min(rest, STEP)} more of ${page.format.count(rest)} rows`;
    status.textContent = wanted
      ? `${page.format.count(order.length)} of ${page.format.count(data.rows)} rows match` : "";
  }

  /** Rows in order of a column: unknown last, equal rows in their first order. */
  function sortRows() {
    let rows = original;
    if (wanted) rows = rows.filter(matches());
    if (sorted !== null) {
      const { i, ascending } = sorted;
      const keys = columns[i].text ? ranks(columns[i], arrays[i]) : arrays[i];
      const sign = ascending ? 1 : -1;
      const unknown = (key) => key === -1 && columns[i].text || Number.isNaN(key);
      rows = rows.slice().sort((a, b) => {
        const [one, other] = [keys[a], keys[b]];
        if (unknown(one) || unknown(other)) return unknown(one) - unknown(other) || a - b;
        return sign * (one - other) || a - b;
      });
    }
    order = rows;
    render();
  }

  function ranks(column, ids) {
    const ordered = column.values.map((_, id) => id).sort(
      (a, b) => (column.values[a] < column.values[b] ? -1 : 1));
    const rank = new Int32Array(ordered.length);
    ordered.forEach((id, place) => (rank[id] = place));
    return Int32Array.from(ids, (id) => (id < 0 ? -1 : rank[id]));
  }

  /** Whether the texts of a row contain all words. */
  function matches() {
    const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
    const texts = columns.map((column) =>
      column.text ? column.values.map((value) => value.toLowerCase()) : null);
    return (row) => words.every((word) => texts.some(
      (values, i) => values !== null && arrays[i][row] >= 0 && values[arrays[i][row]].includes(word)));
  }

  function sort(i, ascending = Boolean(columns[i].text)) {
    sorted = { i, ascending };
    headers.forEach((header, j) => {
      if (j === i) header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      else header.removeAttribute("aria-sort");
    });
    sortRows();
  }

  function search(text) {
    wanted = text.trim();
    input.value = text;
    sortRows();
  }

  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, i) => {
    const button = page.element("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const again = sorted !== null && sorted.i === i;
      sort(i, again ? !sorted.ascending : undefined);
    });
  });

  const input = page.element("input");
  input.type = "search";
  input.placeholder = "Search";
  input.setAttribute("aria-label", `Search: ${table.caption.textContent}`);
  input.addEventListener("input", () => search(input.value));
  const status = page.element("span", "status");
  status.setAttribute("role", "status");
  const tools = page.element("div", "tools");
  tools.append(input, status);
  if (data.rows > data.first && columns.some((column) => column.text)) host.prepend(tools);
  const more = page.element("button", "more");
  more.type = "button";
  more.addEventListener("click", () => {
    visible += STEP;
    render();
  });
  host.querySelector(".scroll").after(more);
  render();
  page.tables.set(host.id, {
    search,
    sort: (key, ascending) => sort(columns.findIndex((each) => each.key === key), ascending),
    /** Show, mark and scroll to a row, counted in the order of the Table. */
    reveal(row) {
      if (!order.includes(row)) search("");
      visible = Math.max(visible, order.indexOf(row) + 1);
      render();
      const found = body.querySelector(`tr[data-row="${row}"]`);
      found.classList.add("marked");
      found.scrollIntoView({ block: "center" });
    },
  });
});

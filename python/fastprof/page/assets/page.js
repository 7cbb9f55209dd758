/* The frame of the page: decoding, number formats, colours, tooltip, theme. Charts register with
 * fastprof.define(name, (host, data, arrays, page) => ...). */
"use strict";

const fastprof = (() => {
  const charts = new Map();
  const redraws = [];

  const SCALES = {
    time: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]],
    decimal: [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]],
  };

  /** Four significant digits and the largest unit in which the value is at least 1. */
  function quantity(value, scales, unit) {
    if (value === null || value === undefined || Number.isNaN(value)) return "na";
    const [size, name] = scales.find(([each]) => Math.abs(value) >= each) || scales.at(-1);
    return `${Number((value / size).toPrecision(4))} ${name}${unit}`.trim();
  }

  const format = {
    time: (ns) => quantity(ns, SCALES.time, ""),
    bytes: (n) => quantity(n, SCALES.decimal, "B"),
    flops: (n) => quantity(n, SCALES.decimal, "FLOP"),
    rate: (perSecond) => quantity(perSecond, SCALES.decimal, "FLOP/s"),
    bandwidth: (perSecond) => quantity(perSecond, SCALES.decimal, "B/s"),
    percent: (share) =>
      share === null || Number.isNaN(share) ? "na" : `${(100 * share).toFixed(1)}%`,
    count: (n) => (n === null || Number.isNaN(n) ? "na" : n.toLocaleString("en")),
  };

  /* Colours are custom properties of page.css: --text, --kind-gemm, --cause-data-loading, ... */
  const colors = {
    /** Colour of a custom property, without the leading --. */
    get: (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(),
    /** Colour of a kernel kind, an idle cause or a phase: of("kind", "gemm"). */
    of: (group, name) => colors.get(`${group}-${slug(name)}`) || colors.get(`${group}-other`),
  };

  function slug(name) {
    return String(name).toLowerCase().replace(/[^a-z0-9]+/g, "-");
  }

  const tooltip = {
    box: null,
    /** Show lines of text near a point of the viewport; the first line is the title. */
    show(x, y, lines) {
      if (tooltip.box === null) {
        tooltip.box = element("div", "tooltip");
        document.body.append(tooltip.box);
      }
      const box = tooltip.box;
      box.replaceChildren(...lines.map((line) => element("div", "", line)));
      box.hidden = false;
      const { width, height } = box.getBoundingClientRect();
      const fits = x + 14 + width < document.documentElement.clientWidth;
      const left = fits ? x + 14 : Math.max(4, x - 14 - width);
      const top = y + 14 + height < window.innerHeight ? y + 14 : Math.max(4, y - 14 - height);
      box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    },
    hide() {
      if (tooltip.box !== null) tooltip.box.hidden = true;
    },
  };

  /** A new element with a class and text. */
  function element(tag, className = "", text = "") {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== "") made.textContent = text;
    return made;
  }

  /** A new button with a text, and a label for the tooltip and screen readers. */
  function button(text, label, act) {
    const made = element("button", "", text);
    made.type = "button";
    made.setAttribute("aria-label", label);
    made.title = label;
    made.addEventListener("click", act);
    return made;
  }

  /** Data and typed arrays of a payload, see `packed` in embed.py. */
  async function decode(text) {
    const coded = atob(text);
    const bytes = new Uint8Array(coded.length);
    for (let i = 0; i < coded.length; i++) bytes[i] = coded.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(stream).arrayBuffer();
    const end = 4 + new DataView(buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, end - 4)));
    const arrays = {};
    for (const [name, [type, offset, length]] of Object.entries(header.arrays)) {
      arrays[name] = new ARRAYS[type](buffer, end + offset, length);
    }
    return [header.data, arrays];
  }

  const ARRAYS = {
    int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
    int32: Int32Array, uint32: Uint32Array, float32: Float32Array, float64: Float64Array,
  };

  /* The view in the address, #section&name=value&..., so that a link to the file shows the same.
   * In a notebook the page has no address of its own. */
  const address = {
    section: "",
    values: new Map(),
    read() {
      const [section, ...pairs] = location.hash.slice(1).split("&");
      address.section = section;
      for (const pair of pairs) {
        const [name, value] = pair.split("=");
        if (value) address.values.set(name, decodeURIComponent(value));
      }
    },
    /** The value of a name, or undefined. */
    get: (name) => address.values.get(name),
    /** Keep a value; null or "" forgets it. */
    set(name, value) {
      if (value === null || value === "") address.values.delete(name);
      else address.values.set(name, String(value));
      clearTimeout(address.due);
      address.due = setTimeout(address.write, 100);
    },
    write() {
      if (location.href.startsWith("about:")) return;
      const pairs = [...address.values].map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
      const hash = [address.section, ...pairs].join("&");
      if (hash !== location.hash.slice(1)) {
        history.replaceState(null, "", hash ? `#${hash}` : location.pathname);
      }
    },
  };

  function setUpAddress() {
    address.read();
    window.addEventListener("hashchange", () => {
      address.section = location.hash.slice(1).split("&")[0];
      address.write();
    });
  }

  /** The text with at most n characters: its begin and, of names that begin alike, its end. */
  function cut(text, n) {
    if (text.length <= n) return text;
    const end = n > 20 ? Math.floor(n * 0.6) : 0;
    return `${text.slice(0, n - end - 1)}…${end ? text.slice(-end) : ""}`;
  }

  const page = {
    address,
    cut,
    format,
    colors,
    tooltip,
    element,
    button,
    /** The time line: locate(words) marks and shows what has them, and returns whether any does. */
    timeLine: null,
    /** Tables by id: search(text), sort(key), reveal(row). Filled before charts are drawn. */
    tables: new Map(),
    /** Call after each change of colours: theme, print. */
    onTheme: (redraw) => redraws.push(redraw),
    /** Call after each change of the width of an element. */
    onResize(host, redraw) {
      let width = host.clientWidth;
      new ResizeObserver(() => {
        if (host.clientWidth === width) return;
        width = host.clientWidth;
        redraw();
      }).observe(host);
    },
    isReducedMotion: () => matchMedia("(prefers-reduced-motion: reduce)").matches,
  };

  /* Theme: that of the system until the button is pressed; light while printing. */
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  let printing = false;

  function applyTheme() {
    const theme = printing ? "light" : chosen || (dark.matches ? "dark" : "light");
    const root = document.documentElement;
    if (root.dataset.theme === theme) return;
    root.dataset.theme = theme;
    const button = document.querySelector("button.theme");
    if (button) labelTheme(button);
    redraws.forEach((redraw) => redraw());
  }

  function labelTheme(button) {
    const other = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Use ${other} colours`);
  }

  function setUpTheme() {
    const button = document.querySelector("button.theme");
    button.hidden = false;
    labelTheme(button);
    button.addEventListener("click", () => {
      chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      applyTheme();
    });
    dark.addEventListener("change", applyTheme);
    for (const [event, value] of [["beforeprint", true], ["afterprint", false]]) {
      window.addEventListener(event, () => {
        printing = value;
        applyTheme();
      });
    }
  }

  /* In a notebook the page is the srcdoc of a frame: links would load the notebook itself. */
  function setUpLinks() {
    if (!location.href.startsWith("about:")) return;
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[href^='#']");
      if (link === null) return;
      event.preventDefault();
      document.getElementById(link.getAttribute("href").slice(1)).scrollIntoView();
    });
  }

  async function draw(host) {
    const chart = charts.get(host.dataset.script);
    try {
      const payload = document.getElementById(`${host.id}-data`);
      const [data, arrays] = await decode(payload.textContent);
      payload.remove();
      await chart(host, data, arrays, page);
    } catch (error) {
      host.textContent = `This part cannot be shown: ${error.message}`;
      console.error(error);
    }
  }

  /* Buttons of findings that show their kernels or idle time on the time line. */
  function setUpFinding() {
    for (const button of document.querySelectorAll("[data-find]")) {
      button.hidden = page.timeLine === null;
      button.addEventListener("click", () => {
        if (!page.timeLine.locate(button.dataset.find)) {
          button.textContent = "Not in the steps of the time line";
          button.disabled = true;
        }
      });
    }
  }

  async function start() {
    setUpTheme();
    setUpLinks();
    setUpAddress();
    await Promise.all([...document.querySelectorAll("[data-script='table']")].map(draw));
    await Promise.all(
      [...document.querySelectorAll("[data-script]:not([data-script='table'])")].map(draw));
    setUpFinding();
    const section = document.getElementById(address.section);
    if (section !== null && address.values.size) section.scrollIntoView();
    document.documentElement.dataset.ready = "";
    performance.mark("ready");
  }

  applyTheme();
  document.addEventListener("DOMContentLoaded", start);
  return { cut, define: (name, chart) => charts.set(name, chart) };
})();

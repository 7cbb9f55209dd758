/* What the charts with uPlot share: axes, size, theme, the line of text below. */
"use strict";

const plots = {
  /** An axis of uPlot; text(value) labels its ticks, size is its height or width in pixels. */
  axis(page, label, text, size) {
    return {
      label, size,
      values: (plot, splits) => splits.map((each) => (each === null ? "" : text(each))),
      stroke: () => page.colors.get("muted"),
      grid: { stroke: () => page.colors.get("line"), width: 1 },
      ticks: { stroke: () => page.colors.get("line"), width: 1, size: 5 },
      font: "12px system-ui, sans-serif",
      labelFont: "12px system-ui, sans-serif",
      labelGap: 2,
    };
  },

  /** Ticks of a logarithmic axis: powers of ten, or 1, 2 and 5 times them, at most about ten. */
  powers(plot, axis, low, high) {
    const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    const every = Math.ceil((last - first) / 10);
    const factors = last - first <= 2 ? [1, 2, 5] : [1];
    const found = [];
    for (let power = first; power <= last; power += every) {
      for (const factor of factors) found.push(factor * 10 ** power);
    }
    return found.filter((each) => each >= low && each <= high);
  },

  /** Height for a width: flat on wide screens. */
  height: (width) => Math.round(Math.min(Math.max(width * 0.55, 280), 520)),

  /** A focusable plot in a host, with a line of text for the selected item. */
  make(host, page, options, data, label) {
    host.classList.add("plot");
    host.tabIndex = 0;
    host.setAttribute("role", "application");
    host.setAttribute("aria-label", label);
    const text = page.element("p", "plot-text");
    text.setAttribute("aria-live", "polite");
    const width = () => Math.max(host.clientWidth - 18, 240);
    const plot = new uPlot(
      { width: width(), height: plots.height(width()), legend: { show: false }, ...options },
      data, host);
    host.append(text);
    page.onResize(host, () => plot.setSize({ width: width(), height: plots.height(width()) }));
    page.onTheme(() => plot.redraw(false, true));
    return [plot, text];
  },

  /** Zooms both or one scale around its middle: factor below 1 zooms in. */
  zoom(plot, names, factor) {
    for (const name of names) {
      const { min, max, distr } = plot.scales[name];
      const [low, high] = distr === 3 ? [Math.log(min), Math.log(max)] : [min, max];
      const [middle, half] = [(low + high) / 2, (high - low) / 2 * factor];
      const ends = [middle - half, middle + half];
      const [from, to] = distr === 3 ? ends.map(Math.exp) : ends;
      plot.setScale(name, { min: from, max: to });
    }
  },
};

/* Draws an icicle on a canvas. Widths and heights are CSS pixels. */
"use strict";

const flameDraw = (() => {
  const ROW = 20;
  const LEAST = 0.25; // narrower siblings are drawn as one
  const TEXT = 28; // narrower parts have no text
  const PADDING = 5;
  const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  const FADED = 0.22;
  const AROUND = 0.6; // rows around the part in view

  /** The context of a canvas of this size, cleared. */
  function prepare(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide || canvas.height !== high) {
      Object.assign(canvas, { width: wide, height: high });
      Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return context;
  }

  /** Colours of the nodes of a tree by phase or kind, and of texts on them. */
  class Colors {
    constructor(colors, tree, group) {
      this.ids = group === "change" ? tree.changes() : tree.array(group);
      this.names = group === "change" ? flameTree.CHANGES : tree.view[`${group}s`];
      this.fills = this.names.map((name) => colors.of(group, name));
      this.mixed = colors.get("flame-mixed");
      this.texts = this.fills.map(textOn);
      this.mixedText = textOn(this.mixed);
      this.match = colors.get("flame-match");
      this.text = colors.get("text");
      this.surface = colors.get("surface");
    }

    fill(node) {
      const id = this.ids[node];
      return id < 0 ? this.mixed : this.fills[id];
    }

    on(node) {
      const id = this.ids[node];
      return id < 0 ? this.mixedText : this.texts[id];
    }
  }

  /** Black or white, whichever has more contrast on a colour #rrggbb. */
  function textOn(color) {
    const [r, g, b] = [1, 3, 5].map((i) => {
      const c = parseInt(color.slice(i, i + 2), 16) / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
  }

  const widths = new Map(); // of characters

  function widthOf(context, character) {
    if (!widths.has(character)) widths.set(character, context.measureText(character).width);
    return widths.get(character);
  }

  /** The text, cut at its end with an ellipsis to a width; "" if nothing of use fits. */
  function fitted(context, text, room) {
    const short = room - widthOf(context, "…");
    let [width, fits] = [0, 0];
    for (let i = 0; i < text.length; i++) {
      width += widthOf(context, text[i]);
      if (width <= short) fits = i + 1;
      else if (width > room) return fits < 2 ? "" : `${text.slice(0, fits)}…`;
    }
    return text;
  }

  /** Append the children of a node in view to `found`, in order: nodes, and runs of those that are
   * too narrow as [left, right, hasMatch]. */
  function children({ tree, places: { left, right }, from, to, width, matches }, node, found) {
    const scale = width / (to - from || 1);
    const end = tree.starts[node + 1];
    let run = null;
    for (let i = flameTree.firstAfter(tree, right, node, from); i < end; i++) {
      const child = tree.children[i];
      if (left[child] >= to) break;
      if ((right[child] - left[child]) * scale >= LEAST) {
        run = null;
        found.push(child);
        continue;
      }
      if (right[child] <= left[child]) continue;
      if (run === null || (run[1] - run[0]) * scale >= 1) {
        run = [left[child], right[child], false];
        found.push(run);
      }
      run[1] = right[child];
      run[2] = run[2] || (matches !== null && matches.is[child] === 1);
    }
  }

  /** The number of rows in view, at any scroll position. */
  function rows(shown) {
    const stack = [0];
    let most = 0;
    while (stack.length) {
      const node = stack.pop();
      const found = [];
      children(shown, node, found);
      if (found.length) most = Math.max(most, shown.tree.level[node] + 1);
      for (const each of found) if (typeof each === "number") stack.push(each);
    }
    return most + 1;
  }

  /** Draw the part of a tree in view; returns the number of rectangles.
   *
   * shown: tree, places, from, to (of places), width, height, scroll (pixels), matches (of
   * Tree.search, or null), level (of the node in view) */
  function draw(context, colors, shown) {
    const { tree, places: { left, right }, from, to, width, height, scroll, matches } = shown;
    const scale = width / (to - from || 1);
    const ratio = window.devicePixelRatio || 1;
    const drawn = new Float64Array(tree.depth + 2).fill(0); // right edge by row, device pixels
    let count = 0;
    context.font = FONT;
    context.textBaseline = "middle";

    /** Draw a part of a row; false if its pixels are taken. Edges are at device pixels. */
    function rectangle(level, begin, end, fill, alpha) {
      const y = level * ROW - scroll;
      const x = Math.max(Math.round(Math.max((begin - from) * scale, 0) * ratio), drawn[level]);
      const last = Math.max(Math.round(Math.min((end - from) * scale, width) * ratio), x + 1);
      if (x >= width * ratio || (end - from) * scale * ratio <= drawn[level]) return false;
      drawn[level] = last;
      if (y + ROW > 0 && y < height) {
        const wide = (last - x) / ratio;
        context.globalAlpha = alpha;
        context.fillStyle = fill;
        context.fillRect(x / ratio, y, wide - (wide > 3 ? 1 : 0), ROW - 1);
        count++;
      }
      return true;
    }

    function alphaOf(node, level) {
      if (matches !== null) return matches.is[node] ? 1 : FADED;
      return level < shown.level ? AROUND : 1;
    }

    function narrow(level, begin, end, hasMatch) {
      const alpha = matches === null || hasMatch ? 1 : FADED;
      rectangle(level, begin, end, hasMatch ? colors.match : colors.mixed, alpha);
    }

    function label(node, level) {
      const y = level * ROW - scroll;
      if (y + ROW <= 0 || y >= height) return;
      const x = Math.max((left[node] - from) * scale, 0);
      const room = Math.min((right[node] - from) * scale, width) - x;
      if (room < TEXT) return;
      const text = fitted(context, tree.label(node), room - 2 * PADDING);
      if (!text) return;
      const isPlain = matches === null || matches.is[node];
      context.globalAlpha = isPlain ? 1 : 0.75;
      context.fillStyle = !isPlain ? colors.text : isMatch(node) ? textOn(colors.match) : colors.on(node);
      context.fillText(text, x + PADDING, y + ROW / 2);
    }

    const isMatch = (node) => matches !== null && matches.is[node] === 1;

    /** Draw a node; its children go on the stack, the first on top. */
    function visit(node) {
      const level = tree.level[node];
      const fill = isMatch(node) ? colors.match : colors.fill(node);
      if (!rectangle(level, left[node], right[node], fill, alphaOf(node, level))) return;
      label(node, level);
      if ((level + 1) * ROW - scroll >= height) return;
      const found = [];
      children(shown, node, found);
      for (let i = found.length - 1; i >= 0; i--) stack.push([found[i], level + 1]);
    }

    const stack = [[0, 0]];
    while (stack.length) {
      const [each, level] = stack.pop();
      if (typeof each === "number") visit(each);
      else narrow(level, ...each);
    }
    context.globalAlpha = 1;
    return count;
  }

  /** A frame around a node. */
  function outline(context, color, thickness, node, shown) {
    const { tree, places: { left, right }, from, to, width, scroll } = shown;
    const scale = width / (to - from || 1);
    const x = Math.max((left[node] - from) * scale, -4);
    const end = Math.min((right[node] - from) * scale, width + 4);
    if (end < 0 || x > width) return;
    context.strokeStyle = color;
    context.lineWidth = thickness;
    context.strokeRect(x + 0.5, tree.level[node] * ROW - scroll + 0.5, Math.max(end - x - 2, 1), ROW - 2);
  }

  return { ROW, Colors, draw, outline, prepare, rows };
})();

/* What the time lines of a step and of ranks share: stage, view, drag, wheel and keys. */
"use strict";

const timelineView = (() => {
  const { AXIS } = timelineDraw;
  const TALLEST = 620;
  const NARROWEST = 20; // ns in a view

  /** A scrolled stage of two canvases: `under` has the events, `over` what changes with the pointer. */
  class Stage {
    constructor(page, label) {
      this.scroll = page.element("div", "timeline-scroll");
      this.scroll.tabIndex = 0;
      this.scroll.setAttribute("role", "application");
      this.scroll.setAttribute("aria-label", label);
      this.under = page.element("canvas");
      this.over = page.element("canvas", "timeline-over");
      this.space = page.element("div");
      const stage = page.element("div", "timeline-stage");
      stage.append(this.under, this.over);
      this.scroll.append(stage, this.space);
    }

    get width() {
      return this.scroll.clientWidth;
    }

    get height() {
      return this.scroll.clientHeight;
    }

    /** Fit rows of a height, in CSS pixels, or scroll them. */
    resize(rows) {
      const height = Math.min(rows + AXIS, TALLEST, Math.max(window.innerHeight * 0.75, 240));
      this.scroll.style.height = `${height}px`;
      this.space.style.height = `${Math.max(rows + AXIS - height, 0)}px`;
    }

    /** A row of the layout, at its place on the canvas. */
    topOf(row) {
      return row.y + AXIS - this.scroll.scrollTop;
    }

    /** The row at a height of the canvas, if any. */
    rowAt(rows, y) {
      if (y < AXIS) return undefined;
      return rows.find((row) => y >= this.topOf(row) - 1 && y < this.topOf(row) + row.height + 1);
    }

    /** Where the pointer is on the canvas. */
    at(event) {
      const box = this.over.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    }
  }

  /** The time from `from` to `to`, in ns, that a stage shows right of `left()` CSS pixels. */
  class View {
    /** bounds: () => [low, high] in ns; changed: () => void, called after each change */
    constructor(stage, left, bounds, changed) {
      Object.assign(this, { stage, left, bounds, changed, from: 0, to: 1 });
    }

    get length() {
      return this.to - this.from;
    }

    get middle() {
      return (this.from + this.to) / 2;
    }

    /** CSS pixels for a nanosecond. */
    get scale() {
      return (this.stage.width - this.left()) / this.length;
    }

    timeAt(x) {
      return this.from + (x - this.left()) / this.scale;
    }

    x(time) {
      return this.left() + (time - this.from) * this.scale;
    }

    set(from, to) {
      const [low, high] = this.bounds();
      const length = Math.min(Math.max(to - from, NARROWEST), high - low || NARROWEST);
      this.from = Math.min(Math.max((from + to - length) / 2, low), Math.max(high - length, low));
      this.to = this.from + length;
      this.changed();
    }

    /** Zoom around a time, which keeps its place. */
    zoom(time, by) {
      const [low, high] = this.bounds();
      const length = Math.min(Math.max(this.length * by, NARROWEST), high - low);
      const share = (time - this.from) / this.length;
      this.set(time - share * length, time + (1 - share) * length);
    }

    pan(ns) {
      this.set(this.from + ns, this.to + ns);
    }
  }

  /** A function that calls `draw` once at the next frame, however often it is called. */
  function atNextFrame(draw) {
    let isDue = false;
    return () => {
      if (isDue) return;
      isDue = true;
      requestAnimationFrame(() => {
        isDue = false;
        draw();
      });
    };
  }

  /** Move the view with the pointer. acts: { hover(x, y, event), click(x, y), leave(event) } */
  function drag(page, stage, view, acts) {
    const { over, scroll } = stage;
    let start = null;
    const stop = () => {
      start = null;
      over.style.cursor = "";
    };

    over.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const [x, y] = stage.at(event);
      start = { x, y, from: view.from, to: view.to, top: scroll.scrollTop, isMoved: false };
      over.setPointerCapture(event.pointerId);
    });
    over.addEventListener("pointermove", (event) => {
      const [x, y] = stage.at(event);
      if (start === null) {
        acts.hover(x, y, event);
        return;
      }
      start.isMoved = start.isMoved || Math.hypot(x - start.x, y - start.y) > 3;
      if (!start.isMoved) return;
      page.tooltip.hide();
      over.style.cursor = "grabbing";
      const ns = (start.x - x) / view.scale;
      view.set(start.from + ns, start.to + ns);
      if (event.pointerType === "mouse") scroll.scrollTop = start.top + start.y - y;
    });
    over.addEventListener("pointerup", (event) => {
      if (start !== null && !start.isMoved) acts.click(...stage.at(event));
      stop();
    });
    over.addEventListener("pointercancel", stop);
    over.addEventListener("pointerleave", acts.leave);
  }

  /** The wheel zooms while the chart has the focus or with Ctrl; else it scrolls the page. */
  function wheel(page, stage, view) {
    const { scroll } = stage;
    scroll.addEventListener("wheel", (event) => {
      const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      const isOwn = event.ctrlKey || event.metaKey || document.activeElement === scroll;
      if (!isSideways && !isOwn) return;
      event.preventDefault();
      page.tooltip.hide();
      const isLines = event.deltaMode === 1;
      if (isSideways) view.pan(((event.deltaX || event.deltaY) * (isLines ? 16 : 1)) / view.scale);
      else view.zoom(view.timeAt(stage.at(event)[0]), Math.exp(event.deltaY * (isLines ? 0.05 : 0.003)));
    }, { passive: false });
  }

  /** Keys of an element with the focus: { name of the key: (event) => act } */
  function keyboard(element, keys) {
    element.addEventListener("keydown", (event) => {
      const act = keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act(event);
    });
  }

  return { NARROWEST, Stage, View, atNextFrame, drag, keyboard, wheel };
})();

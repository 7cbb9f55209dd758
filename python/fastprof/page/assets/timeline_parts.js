/* The elements around a time line: tools, key of colours, text of the selected event. */
"use strict";

const timelineParts = (() => {
  /** Lines of text about an event: the first is its title. */
  function describe(line, i, page, threads) {
    const lane = line.lanes[line.laneOf[i]];
    const time = page.format.time;
    const length = line.end[i] - line.start[i];
    const name = (column) => line.name(i, column);
    const place = timelineData.laneTitle(line, lane, threads);
    const when = `at ${time(line.start[i])}, for ${time(length)}`;
    const n = line.count ? line.count[i] : 1;
    if (n > 1) {
      const free = line.free[i];
      return [
        `${page.format.count(n)} events, longest ${line.titleOf(i)}`,
        `mostly ${name("kind") || "of unknown kind"}, ${time(length - free)} in ${time(length)}`,
        `${when} · ${place}`,
      ];
    }
    if (lane.kind === "idle") return idle(line, i, time, place);
    const found = [line.titleOf(i)];
    const call = [name("op"), name("shape").replace(/,$/, "")].filter(Boolean).join(" ");
    if (call && call !== found[0]) found.push(call);
    if (name("layer")) found.push(`layer ${name("layer")}`);
    const kind = [name("kind"), { fprop: "forward", bprop: "backward" }[name("dir")]].filter(Boolean);
    found.push(`${when} · ${[...kind, place].join(" · ")}`);
    const launch = line.link[i];
    if (lane.kind === "work" && launch >= 0) {
      const late = line.start[i] - line.start[launch];
      found.push(launchText(line, launch, late, time));
    } else if (lane.kind === "work") {
      found.push("launch not recorded");
    }
    if (name("line")) found.push(name("line"));
    return found;
  }

  function launchText(line, launch, late, time) {
    const call = line.titleOf(launch);
    if (line.count && line.count[launch] > 1) return `launched in a group of calls, ${call}`;
    return late < 0
      ? `starts ${time(-late)} before its launch by ${call}: clocks differ`
      : `starts ${time(late)} after the start of its launch by ${call}`;
  }

  /** A part of a gap: the gap is what has the same next work. */
  function idle(line, i, time, place) {
    const lane = line.lanes[line.laneOf[i]];
    let [first, last] = [i, i];
    const isSame = (j) => line.link[j] === line.link[i] && line.link[i] >= 0;
    while (first > lane.first && isSame(first - 1) && line.end[first - 1] === line.start[first]) first--;
    while (last < lane.last - 1 && isSame(last + 1) && line.start[last + 1] === line.end[last]) last++;
    const found = [`idle: ${line.titleOf(i)}, ${time(line.end[i] - line.start[i])}`];
    if (last > first) {
      const parts = [];
      for (let j = first; j <= last; j++) parts.push(`${line.titleOf(j)} ${time(line.end[j] - line.start[j])}`);
      found.push(`gap of ${time(line.end[last] - line.start[first])}: ${parts.join(", ")}`);
    }
    found.push(`at ${time(line.start[first])} · ${place}`);
    if (line.link[i] >= 0) found.push(`next: ${line.titleOf(line.link[i])}`);
    return found;
  }

  const ROLES = {
    launch: "Launch", forward: "Forward call", backward: "Backward", launches: "Launched work",
    next: "Next work",
  };

  /** The text of the selected event, and buttons to what it is linked with. */
  function detail(page, goTo) {
    const text = page.element("div", "timeline-text");
    text.setAttribute("aria-live", "polite");
    const links = page.element("div", "timeline-links");
    const box = page.element("div", "timeline-detail");
    box.append(text, links);
    return {
      box,
      show(line, i, lines) {
        text.replaceChildren(...lines.map((each) => page.element("div", "", each)));
        Object.assign(box.dataset, { start: line.start[i], length: line.end[i] - line.start[i] });
        const known = new Map(line.links(i).reverse());
        links.replaceChildren(...[...known].reverse().map(([role, target]) => {
          const button = page.element("button", "", ROLES[role]);
          button.type = "button";
          button.addEventListener("click", () => goTo(target));
          return button;
        }));
      },
      clear(hint) {
        text.replaceChildren(page.element("div", "timeline-hint", hint));
        links.replaceChildren();
        delete box.dataset.start;
        delete box.dataset.length;
      },
    };
  }

  /** Choice of the time line, search, zoom. */
  function tools(page, data, acts) {
    const bar = page.element("div", "timeline-tools");
    const choice = page.element("select");
    choice.setAttribute("aria-label", "Stretch of the capture");
    data.choices.forEach((each, i) => {
      const option = page.element("option", "", `${each.title}, ${page.format.time(each.length)}`);
      option.value = i;
      choice.append(option);
    });
    choice.addEventListener("change", () => acts.choose(Number(choice.value)));
    const search = page.element("input");
    search.type = "search";
    search.placeholder = "Search name, layer, operator";
    search.setAttribute("aria-label", "Search the time line; Enter goes to the next match");
    const status = page.element("span", "timeline-status");
    status.setAttribute("role", "status");
    search.addEventListener("input", () => acts.search(search.value));
    search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      acts.next(event.shiftKey ? -1 : 1);
    });
    const zoom = page.element("span", "timeline-zoom");
    zoom.append(
      page.button("−", "Zoom out", () => acts.zoom(2)),
      page.button("+", "Zoom in", () => acts.zoom(0.5)),
      page.button("Fit", "Show all of it", acts.fit),
    );
    bar.append(choice, zoom, search, status);
    return { bar, choice, search, status };
  }

  const CAPTIONS = { work: "GPU", idle: "Busy / idle", calls: "API", ranges: "Ranges", system: "OS" };

  /** The key: the kinds of each sort of lane, by time, with their colours. */
  function key(page, line, colors) {
    const list = page.element("div", "timeline-key");
    for (const [kind, caption] of Object.entries(CAPTIONS)) {
      const time = new Map();
      for (const lane of line.lanes) {
        if (lane.kind !== kind) continue;
        for (let i = lane.first; i < lane.last; i++) {
          const each = colors.of[kind][line.what[i]];
          time.set(each, (time.get(each) || 0) + line.end[i] - line.start[i]);
        }
      }
      if (!time.size) continue;
      const group = page.element("span", "timeline-group");
      group.append(page.element("b", "", caption));
      if (kind === "idle") group.append(swatch(page, { name: "busy", color: colors.busy }));
      for (const [each] of [...time].sort((a, b) => b[1] - a[1])) group.append(swatch(page, each));
      list.append(group);
    }
    return list;
  }

  function swatch(page, { name, color }) {
    const item = page.element("span", "timeline-swatch");
    const square = page.element("i");
    square.style.background = color;
    item.append(square, name);
    return item;
  }

  return { describe, detail, key, tools };
})();

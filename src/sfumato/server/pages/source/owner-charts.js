// Charts from public numbers: bars with intervals, answers by hour, columns and their ties.

import { el, percent, svg, whole } from "./owner-dom.js";

const MOST_ROWS = 16;
const ROW = 24;

/** Frequencies with their intervals: rows where labels can be read, columns where there are many. */
export function frequencyChart(column) {
  const drawn = column.labels.length <= MOST_ROWS ? rowBars(column) : columnBars(column);
  const caption = `Estimated shares of ${column.name}, with 95% intervals`;
  drawn.setAttribute("role", "img");
  drawn.setAttribute("aria-label", caption);
  return el("div", { class: "plot" }, drawn);
}

function limits(column) {
  const high = Math.max(0.02, ...column.intervals.map((ends) => ends[1]));
  const low = Math.min(0, ...column.intervals.map((ends) => ends[0]));
  return [Math.max(low, -1), Math.min(high, 2)];
}

function rowBars(column) {
  const [low, high] = limits(column);
  const left = 116, width = 400, right = 56;
  const scale = (width - left - right) / (high - low);
  const x = (share) => left + (Math.min(Math.max(share, low), high) - low) * scale;
  const height = ROW * column.labels.length + 4;
  const rows = column.labels.map((label, place) => {
    const middle = place * ROW + ROW / 2 + 2;
    const share = column.frequencies[place], [start, end] = column.intervals[place];
    const from = Math.min(x(0), x(share));
    return svg("g", {},
      svg("title", { text: `${label}: ${percent(share)}, 95% interval ${percent(start)} to ${percent(end)}` }),
      svg("text", { x: left - 8, y: middle + 4, "text-anchor": "end", class: "ink", text: shortened(label, 16) }),
      svg("rect", { x: from, y: middle - 7, width: Math.max(Math.abs(x(share) - x(0)), 0.5), height: 14, rx: 2, class: "bar" }),
      whisker(x(start), middle, x(end), middle, 4),
      svg("text", { x: width - right + 6, y: middle + 4, text: percent(share) }),
    );
  });
  const zero = svg("line", { x1: x(0), y1: 0, x2: x(0), y2: height, class: "axis" });
  return svg("svg", { viewBox: `0 0 ${width} ${height}` }, rows, zero);
}

function columnBars(column) {
  const [low, high] = limits(column);
  const width = 400, top = 8, bottom = 168, left = 44, count = column.labels.length;
  const y = (share) => bottom - ((Math.min(Math.max(share, low), high) - low) / (high - low)) * (bottom - top);
  const step = (width - left) / count;
  const bars = column.labels.map((label, place) => {
    const x = left + place * step, share = column.frequencies[place], [start, end] = column.intervals[place];
    const drawn = [
      svg("title", { text: `${label}: ${percent(share)}, 95% interval ${percent(start)} to ${percent(end)}` }),
      svg("rect", { x: x + step * 0.1, y: Math.min(y(share), y(0)), width: Math.max(step * 0.8, 0.4), height: Math.max(Math.abs(y(share) - y(0)), 0.5), class: "bar" }),
    ];
    if (count <= 80) drawn.push(whisker(x + step / 2, y(start), x + step / 2, y(end), Math.min(step * 0.25, 3)));
    return svg("g", {}, drawn);
  });
  const ticks = [high, 0].map((share) =>
    svg("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end", text: percent(share, share ? 1 : 0) }),
  );
  const ends = [
    svg("text", { x: left, y: bottom + 16, text: shortened(column.labels[0], 24) }),
    svg("text", { x: width, y: bottom + 16, "text-anchor": "end", text: shortened(column.labels[count - 1], 24) }),
  ];
  const zero = svg("line", { x1: left, y1: y(0), x2: width, y2: y(0), class: "axis" });
  return svg("svg", { viewBox: `0 0 ${width} ${bottom + 22}` }, bars, zero, ticks, ends);
}

function whisker(x1, y1, x2, y2, cap) {
  const level = y1 === y2;
  const ends = level
    ? `M${x1} ${y1 - cap}V${y1 + cap}M${x2} ${y1 - cap}V${y1 + cap}`
    : `M${x1 - cap} ${y1}H${x1 + cap}M${x1 - cap} ${y2}H${x1 + cap}`;
  return svg("path", { d: `M${x1} ${y1}L${x2} ${y2}${ends}`, class: "whisker" });
}

/** Answers by hour; hours without any are shown as gaps. */
export function hourChart(arrivals) {
  const times = arrivals.map((row) => Date.parse(row.hour.replace("Z", ":00:00Z")));
  const first = Math.min(...times), hours = (Math.max(...times) - first) / 3_600_000 + 1;
  const width = innerWidth < 640 ? 340 : 960, top = 22, bottom = 124, step = Math.min(width / hours, 48);
  const sums = new Map();
  arrivals.forEach((row) => sums.set(row.hour, (sums.get(row.hour) ?? 0) + row.answers));
  const most = Math.max(...sums.values()), below = new Map();
  const bars = arrivals.map((row, place) => {
    const x = ((times[place] - first) / 3_600_000) * step, base = below.get(row.hour) ?? bottom;
    const height = Math.max((row.answers / most) * (bottom - top), 1);
    below.set(row.hour, base - height);
    return svg("rect", { x: x + step * 0.08, y: base - height, width: Math.max(step * 0.84, 0.6), height, rx: Math.min(2, step / 4), class: row.round === 2 ? "bar two" : "bar" },
      svg("title", { text: `${hourText(times[place])}: ${whole(row.answers)} answers, round ${row.round}` }));
  });
  const axis = svg("line", { x1: 0, y1: bottom, x2: width, y2: bottom, class: "axis" });
  const labels = [
    svg("text", { x: 0, y: bottom + 16, text: hourText(first) }),
    hours > 1 ? svg("text", { x: Math.max(hours * step, 260), y: bottom + 16, "text-anchor": "end", text: hourText(Math.max(...times)) }) : null,
    svg("text", { x: 0, y: 11, text: `most in an hour: ${whole(most)}` }),
  ];
  return el("div", { class: "plot" },
    svg("svg", { viewBox: `0 0 ${width} ${bottom + 22}`, role: "img", "aria-label": "Answers by hour" }, bars, axis, labels));
}

function hourText(time) {
  const options = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
  return new Date(time).toLocaleString("en", options);
}

/** Columns on a circle; arrows from parents to children, or lines between pairs that are asked. */
export function networkChart({ names, edges, groups = [], arrows = false }) {
  const middle = 210, tall = names.length > 2 ? Math.min(60 + 12 * names.length, 160) : 0;
  const turn = names.length > 2 ? -Math.PI / 2 : Math.PI;
  const places = new Map(names.map((name, place) => {
    const angle = (2 * Math.PI * place) / names.length + turn;
    return [name, [middle + 140 * Math.cos(angle), tall + 40 + tall * Math.sin(angle)]];
  }));
  const heaviest = Math.max(...edges.map((edge) => edge.weight), 1e-9);
  const lines = edges.map((edge) => {
    const [from, to] = [places.get(edge.from), places.get(edge.to)];
    const length = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
    const [dx, dy] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
    const short = arrows ? 17 : 0, tip = [to[0] - short * dx, to[1] - short * dy];
    const drawn = [svg("title", { text: edge.title }),
      svg("line", { x1: from[0], y1: from[1], x2: tip[0], y2: tip[1], class: "edge", "stroke-width": arrows ? 1.6 : 1 + 3 * (edge.weight / heaviest) })];
    if (arrows) drawn.push(svg("path", { class: "arrow", d: `M${tip[0]} ${tip[1]}l${-9 * dx - 4 * dy} ${-9 * dy + 4 * dx}l${8 * dy} ${-8 * dx}z` }));
    return svg("g", {}, drawn);
  });
  const nodes = names.map((name) => {
    const [x, y] = places.get(name), group = Math.max(groups.findIndex((each) => each.includes(name)), 0);
    const below = y >= tall + 40;
    return svg("g", {},
      svg("circle", { cx: x, cy: y, r: 12, class: `node g${group % 6}` }),
      svg("text", { x, y: y + (below ? 30 : -20), "text-anchor": "middle", class: "ink", text: shortened(name, 18) },
        svg("title", { text: name })));
  });
  const label = arrows ? "The network of columns" : "Pairs of columns that are asked";
  return el("div", { class: "plot network" },
    svg("svg", { viewBox: `0 0 ${2 * middle} ${2 * tall + 80}`, role: "img", "aria-label": label }, lines, nodes));
}

export function shortened(text, most) {
  const signs = [...String(text)];
  return signs.length > most ? `${signs.slice(0, most - 1).join("")}…` : signs.join("");
}

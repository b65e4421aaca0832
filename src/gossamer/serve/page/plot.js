// A line plot in SVG: lines over the number of rows, a grid, marks for events, and the values under the pointer.
"use strict";

const NS = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, text = "") {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

// Round numbers between 0 and the largest value, some four of them.
function ticks(largest) {
  const raw = (largest || 1) / 4, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(k => k * power).find(s => s >= raw);
  const found = [];
  for (let value = 0; value <= largest * 1.0001; value += step) found.push(value);
  return found;
}

function count(value) {
  if (value >= 1e6) return +(value / 1e6).toFixed(2) + " M";
  if (value >= 1e4) return +(value / 1e3).toFixed(1) + " k";
  return String(Math.round(value));
}

// At most so many points: neighbours are averaged.
function merge(points, most) {
  const every = Math.ceil(points.length / most);
  if (every < 2) return points;
  const merged = [];
  for (let i = 0; i < points.length; i += every) {
    const part = points.slice(i, i + every), end = part.at(-1);
    merged.push(end.map((value, k) => (k < 2 ? value : part.reduce((sum, p) => sum + p[k], 0) / part.length)));
  }
  return merged;
}

// points: [rows, time, value, value, ...]; names: one for each value; share: whether values are shares of rows; marks:
// drift alarms, [row, about where the change began, time].
function plot(box, line, share, marks = []) {
  const width = Math.max(box.clientWidth, 200), height = box.clientHeight;
  const left = 48, right = 14, top = 14, bottom = 26;
  box.querySelector("svg")?.remove();
  const names = line.names, points = merge(line.points, Math.floor(width / 8));
  const told = points.length ? names.map((name, i) => `${name} ${format(points.at(-1)[2 + i], share)}`).join(", ") : "no rows";
  const alarms = marks.length ? `; drift alarms at rows ${marks.map(mark => mark[0]).join(", ")}` : "";
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Error over time: ${told}${alarms}` });
  box.prepend(svg);
  const rows = points.length ? points.at(-1)[0] : 1;
  const values = points.flatMap(p => p.slice(2));
  const sorted = [...values].sort((a, b) => a - b);
  const typical = sorted[Math.floor(0.98 * (sorted.length - 1))] || 1;  // one wild point does not flatten the rest
  const largest = Math.max(1.08 * typical, share ? 0.02 : 1e-9);
  const x = value => left + (width - left - right) * value / rows;
  const y = value => height - bottom - (height - top - bottom) * Math.min(value, largest) / largest;
  for (const value of ticks(largest)) {
    svg.append(element("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    svg.append(element("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, format(value, share)));
  }
  for (const value of ticks(rows).slice(1)) {
    svg.append(element("text", { x: x(value), y: height - 7, "text-anchor": x(value) > width - 40 ? "end" : "middle" }, count(value)));
  }
  svg.append(element("text", { x: left, y: height - 7 }, "rows"));
  svg.append(element("line", { class: "axis", x1: left, x2: width - right, y1: y(0), y2: y(0) }));
  for (const [row, since] of marks.filter(mark => mark[0] <= rows)) {
    const wide = Math.max(x(row) - x(since), 1);
    svg.append(element("rect", { class: "since", x: x(row) - wide, width: wide, y: top, height: height - top - bottom }));
    svg.append(element("line", { class: "mark", x1: x(row), x2: x(row), y1: top, y2: height - bottom }));
    svg.append(element("path", { class: "flag", d: `M${x(row)} ${top}l-5 -7h10Z` }));
  }
  const path = i => points.map((p, k) => `${k ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[2 + i]).toFixed(1)}`).join("");
  if (points.length) {
    const end = points.at(-1);
    svg.append(element("path", { class: "area", d: `${path(0)}L${x(end[0])} ${y(0)}L${x(points[0][0])} ${y(0)}Z` }));
    for (let i = names.length - 1; i >= 0; i--) svg.append(element("path", { class: `line${i}`, d: path(i) }));
    svg.append(element("circle", { class: "dot", cx: x(end[0]), cy: y(end[2]), r: 3.5 }));
  }
  const cross = element("line", { class: "cross", y1: top, y2: height - bottom, visibility: "hidden" });
  svg.append(cross);
  let tip = box.querySelector("#tip");
  if (!tip) {
    tip = document.createElement("div");
    tip.id = "tip";
    tip.hidden = true;
    box.append(tip);
  }
  svg.onpointermove = event => {
    if (!points.length) return;
    const at = (event.offsetX - left) / (width - left - right) * rows;
    const point = points.reduce((a, b) => (Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a));
    cross.setAttribute("x1", x(point[0]));
    cross.setAttribute("x2", x(point[0]));
    cross.setAttribute("visibility", "visible");
    tip.hidden = false;
    tip.textContent = `row ${count(point[0])}: ` + names.map((name, i) => `${name} ${format(point[2 + i], share)}`).join(" · ");
    const near = marks.find(mark => Math.abs(x(mark[0]) - event.offsetX) < 8);
    if (near) tip.textContent += ` · drift alarm at row ${count(near[0])}, since about ${count(near[1])}`;
    const where = x(point[0]) + 12;
    tip.style.left = `${Math.min(where, width - tip.offsetWidth - 4)}px`;
  };
  svg.onpointerleave = () => {
    cross.setAttribute("visibility", "hidden");
    tip.hidden = true;
  };
}

function format(value, share) {
  if (value === null || value === undefined) return "–";
  if (share) return +(100 * value).toFixed(value < 0.1 ? 1 : 0) + " %";
  return String(+value.toPrecision(3));
}

// The pictures beside the error over time: a reliability diagram, targets in their intervals, and weights of experts.
"use strict";

// An empty picture of the size of its box, with what it shows in words.
function canvas(box, words) {
  const width = Math.max(box.clientWidth, 200), height = box.clientHeight;
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words });
  box.replaceChildren(svg);
  return { svg, width, height };
}

const percent = value => `${+(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`;

// bins: [rows, mean probability, share that came], of those with rows.
function plotReliability(box, calibration) {
  const { rows, error, bins } = calibration;
  const { svg, width, height } = canvas(box, `Calibration over ${count(rows)} rows: probabilities are off by ${percent(error)} in the mean`);
  const left = 44, right = 12, top = 8, bottom = 38;
  const x = p => left + (width - left - right) * p, y = share => height - bottom - (height - top - bottom) * share;
  for (const value of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(element("line", { class: "grid", x1: x(0), x2: x(1), y1: y(value), y2: y(value) }));
    svg.append(element("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, percent(value)));
    svg.append(element("text", { x: x(value), y: height - bottom + 16, "text-anchor": value === 1 ? "end" : "middle" }, percent(value)));
  }
  svg.append(element("text", { x: x(0.5), y: height - 4, "text-anchor": "middle" }, "probability given"));
  svg.append(element("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
  const most = Math.max(...bins.map(([n]) => n));
  for (const [n, p] of bins) {
    const tall = 0.18 * (height - top - bottom) * n / most;
    svg.append(element("rect", { class: "share", x: x(p) - 5, width: 10, y: y(0) - tall, height: tall, rx: 1.5 }));
  }
  const line = bins.map(([, p, share], k) => `${k ? "L" : "M"}${x(p).toFixed(1)} ${y(share).toFixed(1)}`).join("");
  svg.append(element("path", { class: "line0", d: line }));
  for (const [n, p, share] of bins) {
    const spread = 1.96 * Math.sqrt(Math.max(p * (1 - p), 1e-4) / n);  // of rows that come as often as was said
    svg.append(element("line", { class: "spread", x1: x(p), x2: x(p), y1: y(Math.max(0, share - spread)), y2: y(Math.min(1, share + spread)) }));
    const dot = element("circle", { class: "dot", cx: x(p), cy: y(share), r: 4 });
    dot.append(element("title", {}, `said ${percent(p)}, came ${percent(share)}, ${n.toLocaleString("en")} rows`));
    svg.append(dot);
  }
}

// Some four round numbers between two values.
function ticksBetween(low, high) {
  const raw = (high - low || 1) / 3, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(k => k * power).find(s => s >= raw);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) found.push(+value.toPrecision(12));
  return found;
}

// points: [target, prediction, reach of the interval to both sides], null where it has no end.
function plotIntervals(box, points) {
  const ends = points.filter(p => p[2] !== null), inside = ends.filter(([y, f, reach]) => Math.abs(y - f) <= reach).length;
  const { svg, width, height } = canvas(box, `The last ${points.length} targets: ${inside} of ${ends.length} lie in their interval for 90 %`);
  const left = 48, right = 12, top = 8, bottom = 24;
  const values = [...points.map(p => p[0]), ...ends.flatMap(([, f, reach]) => [f - reach, f + reach])].sort((a, b) => a - b);
  const at = share => values[Math.round(share * (values.length - 1))];
  const low = Math.min(at(0.02), ...points.map(p => p[0])), high = Math.max(at(0.98), ...points.map(p => p[0]));
  const room = 0.06 * (high - low || 1), clip = value => Math.min(high + room, Math.max(low - room, value));
  const x = i => left + (width - left - right) * i / Math.max(1, points.length - 1);
  const y = value => height - bottom - (height - top - bottom) * (clip(value) - low + room) / (high - low + 2 * room || 1);
  for (const value of ticksBetween(low, high)) {
    svg.append(element("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    svg.append(element("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, format(value, false)));
  }
  svg.append(element("text", { x: left, y: height - 6 }, `${points.length} rows ago`));
  svg.append(element("text", { x: width - right, y: height - 6, "text-anchor": "end" }, "now"));
  const place = (i, value) => `${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
  const known = points.map((p, i) => [i, ...p]).filter(p => p[3] !== null);
  if (known.length > 1) {
    const up = known.map(([i, , f, reach]) => place(i, f + reach)), down = known.map(([i, , f, reach]) => place(i, f - reach)).reverse();
    svg.append(element("path", { class: "band", d: `M${[...up, ...down].join("L")}Z` }));
  }
  svg.append(element("path", { class: "line0", d: `M${points.map(([, f], i) => place(i, f)).join("L")}` }));
  points.forEach(([target, f, reach], i) => {
    const out = reach !== null && Math.abs(target - f) > reach;
    const dot = element("circle", { class: out ? "outside" : "target", cx: x(i), cy: y(target), r: out ? 3.2 : 2 });
    dot.append(element("title", {}, `came ${format(target)}, predicted ${format(f)}${reach === null ? "" : ` ± ${format(reach)}`}`));
    svg.append(dot);
  });
}

// points: [rows, weight, weight, ...], names: the settings in words, the heaviest first.
function plotWeights(box, line) {
  const { names } = line, last = line.points.at(-1);
  const said = names.map((name, i) => [last[1 + i], name]).filter(([w]) => w >= 0.05).sort((a, b) => b[0] - a[0]);
  const { svg, width, height } = canvas(box, `Weights of settings now: ${said.map(([w, name]) => `${percent(w)} ${name}`).join("; ")}`);
  const left = 48, right = 14, top = 8, bottom = 26;
  const points = line.points.length > 1 ? line.points : [[0, ...last.slice(1)], last];
  const from = points[0][0], rows = last[0];
  const x = row => left + (width - left - right) * (row - from) / (rows - from || 1);
  const y = share => height - bottom - (height - top - bottom) * Math.min(1, share);
  let floor = points.map(() => 0);
  svg.append(element("rect", { class: "others", x: left, width: width - left - right, y: y(1), height: y(0) - y(1) }));
  names.forEach((name, i) => {
    const roof = points.map((p, k) => floor[k] + p[1 + i]);
    const up = points.map((p, k) => `${x(p[0]).toFixed(1)} ${y(roof[k]).toFixed(1)}`);
    const down = points.map((p, k) => `${x(p[0]).toFixed(1)} ${y(floor[k]).toFixed(1)}`).reverse();
    const area = element("path", { class: `expert${i}`, d: `M${[...up, ...down].join("L")}Z` });
    area.append(element("title", {}, name));
    svg.append(area);
    floor = roof;
  });
  for (const value of [0, 0.5, 1]) {
    svg.append(element("line", { class: "over", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    svg.append(element("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, percent(value)));
  }
  for (const value of ticksBetween(from, rows).filter(value => x(value) > left + 50)) {
    svg.append(element("text", { x: x(value), y: height - 7, "text-anchor": x(value) > width - 40 ? "end" : "middle" }, count(value)));
  }
  svg.append(element("text", { x: left, y: height - 7 }, "rows"));
}

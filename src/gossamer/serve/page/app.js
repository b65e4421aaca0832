// The dashboard: follows the server's events, shows the chosen model, and asks for predictions.
"use strict";

const $ = id => document.getElementById(id);
const token = () => sessionStorage.getItem("token");
const headers = () => (token() ? { authorization: `Bearer ${token()}` } : {});
let chosen = decodeURIComponent(location.hash.slice(1)) || null;
let stream = null;  // an AbortController: the stream that is open
let story = null, facts = null, shownRows = "", columns = "";

const TASKS = { classification: "classifies", regression: "predicts a number", novelty: "raises alarms" };
const clock = time => new Date(1000 * time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = time => new Date(1000 * time).toLocaleString([], { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const bytes = n => (n > 1e9 ? `${(n / 1e9).toFixed(1)} GB` : n > 1e6 ? `${(n / 1e6).toFixed(1)} MB` : `${Math.round(n / 1e3)} kB`);
const number = value => (value === null ? "–" : typeof value === "number" ? String(+value.toPrecision(4)) : String(value));

function say(state, reason = "") {
  $("light").className = state === "ready" ? "ready" : state === "connecting" ? "" : "bad";
  $("state-text").textContent = reason ? `${state}: ${reason}` : state;
}

async function follow() {
  stream?.abort();
  const mine = (stream = new AbortController());
  for (let wait = 300; stream === mine; wait = Math.min(2 * wait, 2000)) {
    try {
      const query = chosen ? `?model=${encodeURIComponent(chosen)}` : "";
      const answer = await fetch(`/v1/events${query}`, { headers: headers(), signal: mine.signal });
      if (answer.status === 401 || answer.status === 403) {
        say("locked");
        $("token-form").hidden = false;
        return;
      }
      $("token-form").hidden = true;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        rest += value;
        const parts = rest.split("\n\n");
        rest = parts.pop();
        for (const part of parts) show(JSON.parse(part.slice(6)));
        wait = 300;
      }
    } catch (error) {
      if (mine.signal.aborted) return;
    }
    say("connecting", "the server does not answer");
    await new Promise(done => setTimeout(done, wait));
  }
}

function show(told) {
  const server = told.server;
  say(server.state, server.reason);
  $("rate").textContent = `${count(server.rows_per_second)} rows/s`;
  $("queue").textContent = `${count(server.queue)} rows`;
  $("p99").textContent = server.p99 === null ? "–" : `< ${1000 * server.p99} ms`;
  $("journal").textContent = bytes(server.journal_bytes);
  if (told.story) story = told.story;
  showModels(told.models);
  facts = told.models.find(model => model.name === story?.name) || null;
  $("empty").hidden = told.models.length > 0;
  $("model").hidden = !facts;
  $("example").textContent = `curl ${location.origin}/v1/models/demo/learn \\\n  -d '{"rows": [{"size": 1.5, "age": 3}], "y": [12.5]}'`;
  if (facts) showModel(told.story !== undefined);
}

function showModels(models) {
  const list = $("models");
  while (list.children.length > models.length) list.lastChild.remove();
  models.forEach((model, i) => {
    let item = list.children[i];
    if (!item) {
      item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.append(document.createElement("strong"), document.createElement("span"));
      button.onclick = () => {
        chosen = button.dataset.name;
        history.replaceState(null, "", `#${encodeURIComponent(chosen)}`);
        follow();
      };
      item.append(button);
      list.append(item);
    }
    const button = item.firstChild;
    button.dataset.name = model.name;
    button.setAttribute("aria-current", String(model.name === (story?.name ?? chosen)));
    button.children[0].textContent = model.name;
    const share = model.task !== "regression";
    const error = model.window ? `${format(model.window.error, share)} ${model.task === "novelty" ? "alarms" : "error"}` : "nothing learned";
    button.children[1].textContent = `${count(model.learned)} rows, ${error}`;
  });
}

function showModel(changed) {
  const share = facts.task !== "regression", what = facts.task === "novelty" ? "alarms" : share ? "error" : "mean absolute error";
  $("name").textContent = facts.name;
  const parts = [facts.learner, TASKS[facts.task], facts.columns ? `${facts.columns.length} columns` : null];
  if (facts.classes) parts.push(`${facts.classes.length} classes`);
  if (facts.keys !== null) parts.push(`${count(facts.keys)} keys`);
  $("about").textContent = parts.filter(Boolean).join(" · ");
  const recent = facts.window, baselines = recent ? Object.entries(recent.baselines) : [];
  const best = baselines.reduce((a, b) => (a && a[1] <= b[1] ? a : b), null);
  $("recent-name").textContent = recent ? `${what}, last ${count(recent.rows)} rows` : what;
  $("recent").textContent = recent ? format(recent.error, share) : "–";
  $("recent").className = best && recent.error > best[1] ? "worse" : "";
  $("baseline-name").textContent = best ? best[0] : "baseline";
  $("baseline").textContent = best ? format(best[1], share) : "–";
  $("total").textContent = format(facts.error, share);
  $("rows").textContent = facts.learned.toLocaleString("en");
  $("pending").textContent = count(facts.pending);
  $("alarms").textContent = facts.drift ? count(facts.drift.alarms) : "–";
  $("alarms").title = facts.drift?.last ? `the last at row ${facts.drift.last.toLocaleString("en")}` : "";
  document.title = recent ? `${format(recent.error, share)} · ${facts.name}` : "gossamer serve";
  if (changed) {
    draw();
    showLegend(story.line.names, what);
    showRows();
    showStory();
  }
  showFields();
}

// All pictures of the chosen model.
function draw() {
  plot($("chart"), story.line, facts.task !== "regression", story.drift);
  drawSure();
  $("experts-box").hidden = !story.experts;
  if (story.experts) {
    plotWeights($("experts"), story.experts);
    const { names, points } = story.experts, now = points.at(-1).slice(1), rest = 1 - now.reduce((a, b) => a + b, 0);
    const items = names.map((name, i) => [`expert${i}`, name, now[i]]);
    $("experts-legend").replaceChildren(...[...items, ["others", "all others", Math.max(0, rest)]].map(([kind, name, weight]) => {
      const item = legendItem(kind, name), share = document.createElement("strong");
      share.textContent = percent(weight);
      item.append(share);
      return item;
    }));
  }
}

function drawSure() {
  const numbers = story.intervals.length > 1, told = story.calibration;
  $("sure-box").hidden = !numbers && !told;
  $("sure").classList.toggle("square", !numbers);
  if ($("sure-box").hidden) return;
  const home = $(numbers ? "wide" : "narrow");
  if ($("sure-box").parentElement !== home) home.prepend($("sure-box"));
  const coverage = facts.window?.coverage ?? null, rows = facts.window?.rows ?? 0, held = [];
  if (numbers) {
    $("sure-name").textContent = "How sure: the last targets in their intervals for 90 %";
    plotIntervals($("sure"), story.intervals);
    if (coverage !== null) held.push(`Of the last ${count(rows)} targets, ${(100 * coverage).toFixed(1)} % lay in their interval.`);
  } else {
    $("sure-name").textContent = "How sure: probabilities against what came";
    plotReliability($("sure"), told);
    const event = told.event === null ? "the class it names" : `“${told.event}”`;
    held.push(`Where it says 70 % for ${event}, that should come 7 times in 10. Off by ${(100 * told.error).toFixed(1)} % in the mean of the last ${count(told.rows)} rows.`);
    if (coverage !== null) held.push(`Its sets for 90 % held ${(100 * coverage).toFixed(1)} % of the last ${count(rows)} labels.`);
  }
  $("sure-words").textContent = held.join(" ");
}

function legendItem(kind, words) {
  const item = document.createElement("li"), line = document.createElement("i"), said = document.createElement("span");
  line.className = kind;
  said.textContent = words;
  item.append(line, said);
  return item;
}

function showLegend(names, what) {
  const list = $("legend"), marked = story.drift.length > 0, wanted = JSON.stringify([names, what, marked]);
  if (list.dataset.names === wanted) return;
  list.dataset.names = wanted;
  const items = names.map((name, i) => legendItem(`line${i}`, i ? `always the ${name}` : `the model, ${what}`));
  list.replaceChildren(...items, ...(marked ? [legendItem("mark", "drift alarm, shaded since the change began")] : []));
}

function showRows() {
  const table = $("latest"), names = (story.columns ?? []).slice(0, 6), more = (story.columns ?? []).length > 6;
  const head = ["time", "predicted", "came", ...names, ...(more ? ["…"] : [])];
  const top = document.createElement("tr");
  for (const name of head) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    top.append(cell);
  }
  table.tHead.replaceChildren(top);
  const key = JSON.stringify(story.latest.at(-1) ?? null), fresh = key !== shownRows;
  shownRows = key;
  table.tBodies[0].replaceChildren(...story.latest.toReversed().map(([time, row, guess, label], place) => {
    const line = document.createElement("tr");
    if (fresh && place === 0) line.className = "new";
    const said = facts.task === "novelty" ? (guess ? "alarm" : "usual") : guess === null ? "–" : number(guess);
    const kind = facts.task === "classification" ? (guess === label ? "right" : "wrong") : guess === true ? "wrong" : "";
    line.append(cell(clock(time)), cell(said, kind), cell(label === null ? "–" : number(label)));
    for (const text of [...row.slice(0, 6).map(number), ...(more ? ["…"] : [])]) line.append(cell(text));
    return line;
  }));
}

function cell(text, kind = "") {
  const made = document.createElement("td");
  made.textContent = made.title = text;
  if (kind) made.className = kind;
  return made;
}

function showStory() {
  $("story").replaceChildren(...story.events.toReversed().map(([time, , words]) => {
    const item = document.createElement("li"), when = document.createElement("time");
    when.dateTime = new Date(1000 * time).toISOString();
    when.textContent = day(time);
    item.append(when, words);
    return item;
  }));
}

function showFields() {
  const wanted = JSON.stringify([facts.name, facts.columns, facts.kinds, facts.recipe.key]);
  if (wanted === columns) return;
  columns = wanted;
  $("answer").replaceChildren();
  const last = story.latest.at(-1)?.[1] ?? [];
  const names = facts.columns ?? [];
  const fields = names.length > 24
    ? [field("row", "row", JSON.stringify(last.length ? last : names.map(() => 0)), "text", "the row, as a list of values")]
    : names.map((name, i) => (facts.kinds
      ? field(`f${i}`, name, last[i] ?? "", isNumber(name) ? "number" : "text", `${name} (${facts.kinds[name]})`, false)
      : field(`f${i}`, name, last[i] === undefined ? "0" : number(last[i]), "number", name)));
  if (facts.recipe.key !== null) fields.unshift(field("key", facts.recipe.key, "", "text", facts.recipe.key));
  $("fields").replaceChildren(...fields);
}

const isNumber = name => ["number", "cyclic"].includes(facts.kinds[name]);

// What a field says about a column that an encoder reads; an empty one is a gap.
function cellOf(name, text) {
  if (text === "") return null;
  if (facts.kinds[name] === "boolean" && ["true", "false"].includes(text)) return text === "true";
  return isNumber(name) || (facts.kinds[name] === "timestamp" && /^\d+(\.\d+)?$/.test(text)) ? Number(text) : text;
}

function field(id, name, value, kind, words, required = true) {
  const label = document.createElement("label"), input = document.createElement("input");
  Object.assign(input, { id, name, value, type: kind, required });
  if (kind === "number") input.step = "any";
  label.append(words, input);
  return label;
}

$("try").onsubmit = async event => {
  event.preventDefault();
  const names = facts.columns ?? [];
  const read = (name, i) => (facts.kinds ? cellOf(name, $(`f${i}`).value) : Number($(`f${i}`).value));
  let row;
  try {
    row = names.length > 24 ? JSON.parse($("row").value) : names.map(read);
  } catch (error) {
    showAnswer({ error: { message: "The row must be a list of values." } });
    return;
  }
  const body = { rows: [row] };
  if (facts.recipe.key !== null) body.keys = [$("key").value];
  const ask = query => fetch(`/v1/models/${encodeURIComponent(facts.name)}/predict${query}`,
    { method: "POST", headers: { ...headers(), "content-type": "application/json" }, body: JSON.stringify(body) });
  let told;
  try {
    const more = facts.proba ? "?proba=1" : story.intervals.length && facts.recipe.key === null ? "?interval=0.9" : "";
    told = await (await ask(more)).json();
  } catch (error) {
    told = { error: { message: "The server does not answer." } };
  }
  showAnswer(told);
};

function showAnswer(told) {
  const out = $("answer");
  if (told.error) {
    const words = document.createElement("span");
    words.className = "failed";
    words.textContent = told.error.message;
    out.replaceChildren(words);
    return;
  }
  const guess = told.predictions[0], strong = document.createElement("strong");
  strong.textContent = guess === null ? "no answer" : facts.task === "novelty" ? (guess ? "alarm" : "usual") : number(guess);
  out.replaceChildren(strong);
  if (told.interval?.[0]) out.append(` between ${number(told.interval[0][0])} and ${number(told.interval[0][1])}, nine times in ten`);
  if (told.proba) {
    const bars = document.createElement("div");
    bars.className = "bars";
    const pairs = told.classes.map((name, i) => [name, told.proba[0][i]]).sort((a, b) => b[1] - a[1]).slice(0, 5);
    for (const [name, share] of pairs) {
      const bar = document.createElement("span"), inner = document.createElement("i"), label = document.createElement("span"), value = document.createElement("span");
      bar.className = "bar";
      inner.style.width = `${100 * share}%`;
      bar.append(inner);
      label.textContent = number(name);
      value.textContent = `${(100 * share).toFixed(1)} %`;
      bars.append(label, bar, value);
    }
    out.append(bars);
  }
}

$("token-form").onsubmit = event => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value.trim());
  $("token").value = "";
  follow();
};
addEventListener("resize", () => { if (facts && story) draw(); });
addEventListener("pagehide", () => stream?.abort());
follow();

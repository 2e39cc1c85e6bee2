/*
 * page.js - the page of one process. Asks for now.json once a second, one at a time, and nothing while nobody looks. The first answer has the hour that the
 * server keeps, each later one what came since; a page that is loaded again has it all again.
 *
 * A point is a list, see Point of history.go. Where nothing was read for a while lines end and begin anew. A label has one colour, by the number that the
 * server gave it. Plots are canvases; what they show can be read in their legends, and at any time of the plot by pointing at it.
 */
"use strict";

const EVERY_MS = 1000, FINE_MS = 300e3, HOUR_MS = 3600e3, COARSE_MS = 10e3, SHOWN = 6;
const [AT, LIVE, COMMITTED, RSS, LIMIT, USED, ALLOCATED, FULL, MISS, NULL, CLOSED, CPU, WAIT, REST_COMMITTED, REST_ALLOCATED, LABELS] = Array(16).keys();
const state = { points: [], names: new Map(), paused: false, hour: false, chosen: null, doc: null, hover: null, failed: false };
const dark = matchMedia("(prefers-color-scheme: dark)");

const colour = id => id < 0 ? (dark.matches ? "#a9b2bd" : "#5b6470") : `oklch(${dark.matches ? 0.76 : 0.54} 0.14 ${(40 + id * 137.508) % 360})`;
const fixed = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const nameOf = id => id < 0 ? "(rest)" : state.names.get(id) ?? "?";

function swatch(id) {
  const i = make("i", { class: "swatch" });
  i.style.background = colour(id);
  return i;
}

/* A label as a button that opens it. */
function labelled(id, name) {
  return make("button", { type: "button", class: "label", title: name, "data-focus": "label " + name, onclick: () => choose(name) }, swatch(id), name);
}

// ---- plots ----

const clock = ms => new Date(ms).toLocaleTimeString([], { hour12: false });

/* Points of the chosen range, with null where a gap is. */
function ranged() {
  const last = state.points.length ? state.points[state.points.length - 1][AT] : 0;
  const first = state.points.length ? state.points[0][AT] : 0;
  const from = Math.max(last - (state.hour ? HOUR_MS : FINE_MS), Math.min(first, last - 60e3)); // what there is, a minute at least
  return { from, to: last, points: state.points.filter(p => p[AT] >= from) };
}

/* Labels that had most of a figure within the range, by number. */
function largest(points, column) {
  const most = new Map();
  for (const p of points) for (const l of p[LABELS]) if (l[column] > 0) most.set(l[0], (most.get(l[0]) || 0) + l[column]);
  return [...most].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([id]) => id);
}

const lines = (...list) => points => list.map(([name, column, c]) => ({ name, colour: fixed(c), values: points.map(p => p[column]) }));

/* One series for each of the largest labels, and one for all others; what a label has not is 0. */
function byLabel(column, rest) {
  return points => {
    const shown = largest(points, column).slice(0, SHOWN), set = new Set(shown);
    const of = (p, id) => { const l = p[LABELS].find(l => l[0] === id); return l ? l[column] : 0; };
    const list = shown.map(id => ({ name: nameOf(id), id, colour: colour(id), values: points.map(p => of(p, id)) }));
    const others = points.map(p => p[LABELS].reduce((sum, l) => set.has(l[0]) ? sum : sum + (l[column] || 0), p[rest] || 0));
    if (others.some(v => v > 0)) list.push({ name: "others", colour: colour(-1), values: others });
    return list;
  };
}

const figures = [
  { id: "memory", unit: bytes, series: lines(["committed", COMMITTED, "--c0"], ["live", LIVE, "--c2"], ["resident (whole process)", RSS, "--c7"]), limit: true },
  { id: "by-label", unit: bytes, series: byLabel(1, REST_COMMITTED), stacked: true, limit: true },
  { id: "rate", unit: v => v == null ? "-" : count(v) + "/s", series: byLabel(3, REST_ALLOCATED) },
  { id: "causes", unit: v => v == null ? "-" : count(v) + "/s", series: lines(["full", FULL, "--c0"], ["miss", MISS, "--c1"], ["null", NULL, "--c3"], ["closed", CLOSED, "--c4"]) },
  { id: "latency", unit: nanos, series: lines(["running", CPU, "--c2"], ["waiting", WAIT, "--c1"]) },
];

for (const f of figures) {
  f.box = byId(f.id);
  f.canvas = make("canvas", { role: "img", "aria-label": f.box.querySelector("h2").textContent + "; the list below shows the numbers" });
  f.legend = make("ul", { class: "legend" });
  f.box.append(f.canvas, f.legend);
  f.canvas.addEventListener("pointermove", e => {
    const r = f.canvas.getBoundingClientRect();
    state.hover = { id: f.id, share: (e.clientX - r.left - f.left) / (r.width - f.left) };
    drawFigure(f);
  });
  f.canvas.addEventListener("pointerleave", () => { state.hover = null; drawFigure(f); });
}

/* "8 MiB" for "8.00 MiB". */
const short = words => words.replace(/\.0+(?=\D|$)|(\.\d*?[1-9])0+(?=\D|$)/, "$1");

/* A round number at or above v, of 1, 2 or 5 times a power of ten, of bytes of two. */
function round(v, binary) {
  if (v <= 0) return 1;
  if (binary) {
    const unit = 2 ** (10 * Math.floor(Math.log2(v) / 10)), n = v / unit;
    return unit * [1, 2, 4, 6, 8, 10, 16, 20, 32, 40, 64, 80, 100, 128, 200, 256, 400, 512, 800, 1024].find(k => k >= n);
  }
  const unit = 10 ** Math.floor(Math.log10(v));
  return unit * [1, 2, 5, 10].find(k => k * unit >= v);
}

function drawFigure(f) {
  const { from, to, points } = ranged(), list = f.series(points), now = points.length - 1;
  const gap = state.hour ? 3 * COARSE_MS : 3500;
  const breaks = points.map((p, k) => k > 0 && p[AT] - points[k - 1][AT] > (p[AT] > to - FINE_MS + gap ? 3500 : 3 * COARSE_MS));
  if (f.stacked) for (let k = 1; k < list.length; k++) list[k].values = list[k].values.map((v, n) => v + list[k - 1].values[n]);
  let top = 0;
  for (const s of list) for (const v of s.values) if (v > top) top = v;
  const limit = f.limit && now >= 0 ? points[now][LIMIT] : 0, near = limit > 0 && limit <= 4 * top;
  if (near) top = Math.max(top, limit * 1.03);
  top = round(top, f.unit === bytes);
  f.shown = list, f.top = top;

  const scale = devicePixelRatio || 1, width = f.canvas.clientWidth, height = f.canvas.clientHeight;
  if (f.canvas.width !== Math.round(width * scale) || f.canvas.height !== Math.round(height * scale))
    f.canvas.width = Math.round(width * scale), f.canvas.height = Math.round(height * scale);
  const c = f.canvas.getContext("2d");
  c.setTransform(scale, 0, 0, scale, 0, 0);
  c.clearRect(0, 0, width, height);
  c.font = "11px system-ui, sans-serif";
  c.lineWidth = 1;
  const left = f.left = 62, bottom = height - 18, high = 6;
  const x = t => left + (width - left - 2) * (to > from ? (t - from) / (to - from) : 1), y = v => bottom - (bottom - high) * v / top;
  c.strokeStyle = fixed("--line"), c.fillStyle = fixed("--quiet"), c.textAlign = "right", c.textBaseline = "middle";
  for (let k = 0; k <= 4; k++) {
    const v = top * k / 4;
    c.beginPath(), c.moveTo(left, Math.round(y(v)) + 0.5), c.lineTo(width, Math.round(y(v)) + 0.5), c.stroke();
    c.fillText(short(f.unit(v)), left - 6, y(v));
  }
  c.textAlign = "center", c.textBaseline = "alphabetic";
  if (to) for (let k = 0; k <= 3; k++) {
    const t = from + (to - from) * k / 3;
    c.textAlign = k === 0 ? "left" : k === 3 ? "right" : "center";
    c.fillText(clock(t), x(t), height - 4);
  }
  /* Lines, and areas of what is stacked; a single point between two gaps is a dot. */
  for (let k = list.length - 1; k >= 0; k--) {
    const s = list[k], runs = [];
    s.values.forEach((v, n) => {
      if (v == null) return;
      const last = runs[runs.length - 1];
      if (!last || breaks[n] || last[last.length - 1] !== n - 1) runs.push([n]);
      else last.push(n);
    });
    c.strokeStyle = c.fillStyle = s.colour;
    c.lineWidth = 1.75;
    for (const run of runs) {
      c.beginPath();
      for (const n of run) c.lineTo(x(points[n][AT]), y(s.values[n]));
      if (run.length === 1) c.arc(x(points[run[0]][AT]), y(s.values[run[0]]), 1.5, 0, 7);
      c.stroke();
      if (!f.stacked || run.length === 1) continue;
      for (const n of [...run].reverse()) c.lineTo(x(points[n][AT]), y(k > 0 ? list[k - 1].values[n] : 0));
      c.globalAlpha = 0.35, c.fill(), c.globalAlpha = 1;
    }
  }
  if (near) {
    c.strokeStyle = c.fillStyle = fixed("--bad"), c.setLineDash([6, 4]), c.lineWidth = 1.5;
    c.beginPath(), c.moveTo(left, y(limit)), c.lineTo(width, y(limit)), c.stroke(), c.setLineDash([]);
    c.textAlign = "left", c.textBaseline = "top", c.fillText(`limit ${bytes(limit)}`, left + 4, y(limit) + 3);
  }
  f.x = x;
  let at = now;
  if (state.hover && state.hover.id === f.id && now >= 0) {
    const t = from + Math.max(0, Math.min(1, state.hover.share)) * (to - from);
    at = points.reduce((best, p, n) => Math.abs(p[AT] - t) < Math.abs(points[best][AT] - t) ? n : best, 0);
    c.strokeStyle = fixed("--ink"), c.lineWidth = 1, c.beginPath(), c.moveTo(x(points[at][AT]), high), c.lineTo(x(points[at][AT]), bottom), c.stroke();
  }
  legend(f, list, at, limit, near, points);
}

function legend(f, list, at, limit, near, points) {
  const rows = list.map((s, k) => {
    const v = at < 0 ? null : s.values[at];
    return [s, f.unit(v != null && f.stacked && k > 0 ? v - list[k - 1].values[at] : v)];
  });
  const words = [];
  if (state.hover && state.hover.id === f.id && at >= 0) words.push("at " + clock(points[at][AT]));
  if (f.limit && limit > 0 && !near) words.push(`limit ${bytes(limit)} (above the plot)`);
  if (!rows.length) words.push(f.id === "rate" ? "no allocations" : "no data yet");
  f.legend.replaceChildren(...rows.map(([s, v]) => {
    const i = make("i", { class: "swatch" });
    i.style.background = s.colour;
    return make("li", {}, i, s.name + " ", make("b", {}, v));
  }), ...words.map(w => make("li", { class: "quiet" }, w)));
}

// ---- parts ----

function drawVerdict(v) {
  say(byId("verdict-head"), v.title);
  byId("verdict").className = "card " + (v.count === 0 ? "fine" : "alarm");
  const key = JSON.stringify(v.findings);
  if (byId("findings").dataset.key !== key) {
    byId("findings").dataset.key = key;
    renew(byId("findings"), v.findings.map(f => make("li", {}, f.text + " ",
      f.label != null ? make("button", { type: "button", class: "link", "data-focus": "label " + nameOf(f.label), onclick: () => choose(nameOf(f.label)) }, "Show ", swatch(f.label), nameOf(f.label)) : null,
      f.label == null && f.anchor && f.anchor !== "verdict" ? make("a", { href: "#" + f.anchor, "data-focus": "at " + f.anchor }, "Show " + byId(f.anchor).querySelector("h2").textContent) : null)));
  }
  const words = JSON.stringify(v.sections);
  if (byId("diagnosis").dataset.key === words) return;
  byId("diagnosis").dataset.key = words;
  byId("diagnosis").replaceChildren(make("p", { class: "quiet" }, v.head), ...v.sections.map(s => make("div", {}, make("h3", {}, s.name),
    ...s.lines.map(l => make("p", { class: l.startsWith("ACTION: ") ? "action" : "" }, l)))));
}

function drawTiles(d) {
  const n = d.now, limit = n.limit;
  const tiles = [["Live", bytes(n.live), "objects in use", many(n.objects, "object", "objects")],
    ["Committed", bytes(n.committed), "slabs and large objects", bytes(n.warm) + " of it kept warm"],
    ["Resident", bytes(n.rss), "the whole process", "as counted by the system"],
    ["Limit", limit.bytes ? percent(limit.used / limit.bytes) : "-", limit.bytes ? `${bytes(limit.bytes - Math.min(limit.used, limit.bytes))} left of ${limit.name}` : "no limit",
      limit.ns ? "reached in " + span(limit.ns / 1e9) : "not in sight", limit.ns && limit.ns < 3600e9],
    ["Growth", n.growth > 0 ? bytes(n.growth) + "/s" : "none", "of memory that stays", "last 10 s: " + (n.pace[0] == null ? "-" : signed(n.pace[0]) + "/s"), false],
    ["Allocations", n.allocated == null ? "-" : count(n.allocated) + "/s", "objects allocated", d.over ? "over " + span(d.over) : "idle"],
    ["Slow path", percent(n.slow), "of allocations", "took a slab or a lock"],
    ["Phases", count(n.open), "open", many(n.draining, "ended phase holds memory", "ended phases hold memory")],
    ["Leaking labels", count(n.leaking), "their ended phases still", `hold objects after ${document.body.dataset.leak} s`, n.leaking > 0],
    ["Refused", count(n.refused), "allocations so far", "out of memory or over budget", n.refused > 0]];
  const list = byId("tiles");
  tiles.forEach(([name, value, about, more, bad], k) => {
    if (!list.children[k]) list.append(make("div", {}, make("dt", {}, name), make("dd", {}), make("dd", { class: "about" }), make("dd", { class: "about" })));
    const [, v, a, m] = list.children[k].children;
    say(v, value), v.className = bad ? "bad" : "", say(a, about), say(m, more);
  });
}

function meter(words, used, of, bad) {
  const track = make("div", { class: "track" }), bar = make("b", {});
  bar.style.width = Math.min(100, 100 * used / Math.max(1, of)) + "%";
  if (bad) bar.style.background = "var(--bad)";
  track.append(bar);
  return make("div", { class: "limit" }, make("p", {}, words), track);
}

function drawGrowth(d) {
  const n = d.now, l = n.limit;
  say(byId("growth-words"), `Live bytes: ${n.pace.slice(0, 3).map((v, k) => (v == null ? "-" : signed(v) + "/s") + [" over 10 s", " over 100 s", " since the start"][k]).join(", ")}. ` +
    `Committed: ${n.pace.slice(3).map(v => v == null ? "-" : signed(v) + "/s").join(", ")}.`);
  const soon = x => x.ns && x.ns < 3600e9, when = x => x.ns ? `, reached in ${span(x.ns / 1e9)}` : "";
  byId("limits").replaceChildren(...(l.bytes ? [meter(`${l.name}: ${bytes(l.used)} of ${bytes(l.bytes)}, ${bytes(l.bytes - Math.min(l.used, l.bytes))} left${when(l)}`, l.used, l.bytes, soon(l))] : []),
    ...d.labels.filter(x => x.limit).slice(0, 8).map(x => meter(`budget of ${x.name}: ${bytes(x.limit.used)} of ${bytes(x.limit.bytes)}${when(x.limit)}`, x.limit.used, x.limit.bytes, soon(x.limit))));
  const rows = d.labels.filter(x => x.growth > 0 || x.pace > 0).sort((a, b) => b.growth - a.growth || b.pace - a.pace).slice(0, 8);
  fill("growers", rows.map(x => [labelled(x.id, x.name), x.growth > 0 ? bytes(x.growth) + "/s" : "-", signed(x.pace) + "/s", bytes(x.live)]), "no label grows");
}

function bar(share, colour) {
  const track = make("span", { class: "track inline" }), b = make("b", {});
  b.style.width = share > 0 ? Math.max(2, 100 * share) + "%" : "0";
  b.style.minWidth = "0";
  b.style.background = colour;
  track.append(b);
  return make("span", { class: "share" }, track, percent(share));
}

function drawLabels(d) {
  const all = d.labels.reduce((sum, l) => sum + l.committed, 0) || 1;
  fill("label-rows", d.labels.map(l => [labelled(l.id, l.name), bytes(l.committed), bar(l.committed / all, colour(l.id)), bytes(l.live), count(l.objects), l.growth > 0 ? bytes(l.growth) : "-",
    l.allocated == null ? "-" : count(l.allocated), count(l.open), count(l.draining), bytes(l.pinned), count(l.escaped),
    l.limit ? percent(l.limit.used / l.limit.bytes) : "-"]), "no label has been used yet");
  say(byId("more-labels"), d.more_labels > 0 ? `and ${many(d.more_labels, "more label", "more labels")} that hold less` : "");
}

function cell(n, most) {
  const e = make("span", { class: "cell" }, n ? count(n) : "");
  if (n) e.style.background = `color-mix(in oklab, var(--heat) ${Math.round(12 + 33 * Math.log(1 + n) / Math.log(1 + most))}%, transparent)`;
  return e;
}

function drawPhases(d) {
  const old = d.labels.filter(l => l.draining > 0).sort((a, b) => b.oldest - a.oldest || b.draining - a.draining).slice(0, 12);
  const most = Math.max(1, ...old.flatMap(l => l.ages));
  fill("ages", old.map(l => [labelled(l.id, l.name), ...l.ages.map(n => cell(n, most))]), "no ended phase holds objects");
  fill("oldest", d.oldest.map(p => [labelled(p.label, p.name), String(p.era), span(p.age / 1e9), bytes(p.committed), count(p.objects)]), "no ended phase holds objects");
  fill("open-phases", d.open.map(p => [labelled(p.label, p.name), String(p.era), span(p.age / 1e9), bytes(p.committed), bytes(p.live)]), "no open phase holds at least a tenth of the memory and at least 1 MiB");
}

function drawTables(d) {
  fill("class-rows", d.classes.map(c => [c.name, bytes(c.live), bytes(c.committed), count(c.slabs), c.slow == null ? "-" : count(c.slow), percent(c.recycled), percent(c.waited)]), "no size class has been used yet");
  fill("close-rows", d.closes.map(c => [labelled(c.label, c.name), String(c.era), span(c.ago / 1e9), bytes(c.given), bytes(c.fell), count(c.escaped)]), "no phase has been closed yet");
}

function drawChosen(d) {
  const c = d.chosen;
  byId("chosen").hidden = state.chosen == null;
  if (state.chosen == null) return;
  byId("chosen-name").replaceChildren(c ? swatch(c.id) : "", "Label " + state.chosen);
  if (!c) {
    say(byId("chosen-words"), "There is currently no such label.");
    for (const id of ["chosen-phases", "chosen-sites", "chosen-sizes"]) fill(id, [], "none");
    return say(byId("chosen-more"), ""), say(byId("chosen-profile"), "");
  }
  const paces = c.paces.map(v => v == null ? "-" : signed(v) + "/s");
  say(byId("chosen-words"), `${bytes(c.live)} live in ${many(c.objects, "object", "objects")}, ${bytes(c.committed)} held by ${many(c.open, "open phase", "open phases")} and ${many(c.draining, "ended phase", "ended phases")}. ` +
    (c.growth > 0 ? `The label grows by ${bytes(c.growth)} per second. ` : "The memory that stays does not grow. ") + `Live bytes: ${paces[0]} over 10 s, ${paces[1]} over 100 s, ${paces[2]} since the start.` +
    (c.limit ? ` Budget: ${bytes(c.limit.used)} of ${bytes(c.limit.bytes)}${c.limit.ns ? ", reached in " + span(c.limit.ns / 1e9) : ""}.` : ""));
  fill("chosen-phases", c.phases.map(p => [String(p.era), p.open ? "open" : "ended", span(p.age / 1e9), bytes(p.committed), bytes(p.live), count(p.objects)]), "no phase of this label is listed");
  say(byId("chosen-more"), c.more ? `The largest phases. ${count(c.more)} more are not listed.` : "The largest phases first.");
  say(byId("chosen-profile"), c.profile);
  fill("chosen-sites", c.sites.map(s => [s.name, bytes(s.bytes), bytes(s.all)]), "no samples");
  fill("chosen-sizes", c.sizes.map(s => [s.name, bytes(s.bytes)]), "no samples");
}

function drawWho(d) {
  const words = [d.host, "temporal-slab " + d.version, "up " + span(d.uptime), d.state];
  if (d.age != null) words.push(`figures of ${span(d.age)} ago`);
  if (d.recorded) words.push("recorded at " + new Date(d.at).toLocaleString());
  if (d.options) words.push("TSLAB_OPTIONS=" + d.options);
  if (d.ignored.length) words.push("ignored: " + d.ignored.join("; "));
  say(byId("who"), words.concat(d.notes).join(" · "));
  byId("next").hidden = !d.ended && !d.error;
  if (d.ended) {
    const same = byId("next").dataset.next === String(d.next);
    if (!same || !byId("next").firstChild) {
      byId("next").dataset.next = String(d.next);
      byId("next").replaceChildren("The process has ended; these are its last figures. ", d.next ? make("a", { href: `/processes/${d.next}/` }, `Process ${d.next} runs the same command`) : "");
    }
  } else if (d.error) say(byId("next"), d.error);
}

function draw() {
  const d = state.doc;
  if (!d) return;
  drawWho(d);
  drawVerdict(d.verdict);
  drawTiles(d);
  drawChosen(d);
  drawGrowth(d);
  drawLabels(d);
  drawPhases(d);
  drawTables(d);
  figures.forEach(drawFigure);
}

// ---- asking ----

/* The label that is looked at stands in the address, so a page that is loaded again, or sent to somebody, shows it. */
function choose(name) {
  state.chosen = name;
  history.replaceState(null, "", name == null ? location.pathname : "#label=" + encodeURIComponent(name));
  byId("chosen").hidden = name == null;
  if (name != null) {
    say(byId("chosen-name"), "Label " + name);
    byId("chosen").focus();
    byId("chosen").scrollIntoView({ block: "nearest" });
  }
  ask().catch(() => {});
}

function keep(points) {
  const list = state.points;
  for (const p of points) if (!list.length || p[AT] > list[list.length - 1][AT]) list.push(p);
  const last = list.length ? list[list.length - 1][AT] : 0;
  let before = -Infinity;
  state.points = list.filter(p => {
    if (p[AT] < last - HOUR_MS) return false;
    if (p[AT] >= last - FINE_MS) return true;
    if (p[AT] - before < COARSE_MS) return false;
    before = p[AT];
    return true;
  });
}

async function ask() {
  const since = state.points.length ? state.points[state.points.length - 1][AT] : 0;
  const d = await get(`now.json?since=${since}` + (state.chosen != null ? "&label=" + encodeURIComponent(state.chosen) : ""));
  if (state.doc && state.doc.server !== d.server) { // another one: its labels have other numbers, and its history is all there is
    state.points = [], state.names.clear(), state.doc = null;
    return ask();
  }
  for (const [id, name] of d.names) state.names.set(id, name);
  keep(d.points);
  state.doc = d;
  draw();
  return d;
}

function tell(words, kind) {
  say(byId("state"), words);
  byId("state").className = kind;
}

async function turn() {
  const begin = Date.now();
  if (!state.paused && !document.hidden) {
    try {
      const d = await ask();
      if (!state.paused) d.recorded ? tell("recorded", "") : d.ended ? tell("ended", "bad") : d.error ? tell("not readable", "bad") : d.state === "stopped" ? tell("stopped", "bad") : tell("live", "good");
    } catch (e) {
      if (!state.paused) tell("no answer (" + e.message + ")" + (state.points.length ? "; showing figures of " + clock(state.points[state.points.length - 1][AT]) : ""), "bad");
    }
  }
  setTimeout(turn, Math.max(200, EVERY_MS - (Date.now() - begin)));
}

byId("pause").addEventListener("click", () => {
  state.paused = !state.paused;
  byId("pause").setAttribute("aria-pressed", String(state.paused));
  say(byId("pause"), state.paused ? "Resume" : "Pause");
  if (state.paused) tell("paused", "");
});
byId("range").addEventListener("click", () => {
  state.hour = !state.hour;
  byId("range").setAttribute("aria-pressed", String(state.hour));
  figures.forEach(drawFigure);
});
byId("unchoose").addEventListener("click", () => { choose(null); byId("labels").focus(); });
addEventListener("resize", () => figures.forEach(drawFigure));
dark.addEventListener("change", () => { for (const b of document.querySelectorAll("tbody")) delete b.dataset.key; delete byId("findings").dataset.key; draw(); });
const begun = location.hash.match(/^#label=(.*)$/);
if (begun) try { state.chosen = decodeURIComponent(begun[1]); } catch { /* no label */ }
turn();

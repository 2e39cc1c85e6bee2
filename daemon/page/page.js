/*
 * page.js - the page of tslabd. Asks for /metrics once a second and for /reports.json every other time, keeps five minutes
 * of samples, and draws them. It asks one thing at a time, and nothing while nobody looks.
 *
 * Samples are kept as they came; what a figure shows is computed from them when it is drawn, so that labels may come and
 * go. Where nothing was measured for a while (nobody looked, a pause, no answer) stands a sample without numbers: lines and
 * rates end before it and begin anew behind it. Text is only ever set as text: labels are the program's, and may hold anything. Without uPlot the figures have
 * their legends, which show the numbers.
 */
"use strict";

const KEPT_S = 300, EVERY_MS = 1000, GAP_S = 3, NAMES_SHOWN = 6, LEAKS_SHOWN = @DOCTOR_ROWS@, PREFIX = "temporal_slab_";
const samples = []; // {t, m: Map name -> [{labels, v}]}; m is null in a gap
const state = { paused: false, reports: null, turn: 0 };
const byId = id => document.getElementById(id);

// ---- numbers as words ----

function scaled(v, base, units) {
  let k = 0;
  while (Math.abs(v) >= base && k < units.length - 1) v /= base, k++;
  return (k === 0 ? Math.round(v) : v.toFixed(v < 10 ? 2 : v < 100 ? 1 : 0)) + units[k];
}
const bytes = v => v == null ? "-" : scaled(v, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
const count = v => v == null ? "-" : Number.isInteger(v) || v >= 100 ? scaled(v, 1000, ["", "k", "M", "G", "T"]) : v.toFixed(v < 10 ? 2 : 1);
const percent = v => v == null || Number.isNaN(v) ? "-" : (100 * v).toFixed(v < 0.1 ? 2 : 1) + " %";
const nanos = v => v == null ? "-" : v < 1e3 ? v.toFixed(0) + " ns" : v < 1e6 ? (v / 1e3).toFixed(1) + " us" : (v / 1e6).toFixed(1) + " ms";
function age(s) {
  if (s < 1) return (1000 * s).toFixed(0) + " ms";
  if (s < 120) return s.toFixed(1) + " s";
  return s < 7200 ? (s / 60).toFixed(1) + " min" : (s / 3600).toFixed(1) + " h";
}

// ---- /metrics ----

const WANTED = new Set(["rss_bytes", "committed_bytes", "live_bytes", "live_objects", "slow_path_hits_total",
  "open_phases", "draining_phases", "uptime_seconds", "label_committed_bytes", "label_objects_allocated_total", "label_draining_bytes",
  "label_unexpected_draining_phases", "label_unexpected_draining_objects", "label_unexpected_draining_bytes", "label_oldest_unexpected_seconds",
  "class_slow_current_full_total", "class_slow_current_null_total", "class_slow_cache_miss_total",
  "class_slow_epoch_closed_total", "class_slow_path_hits_total", "class_live_bytes", "class_committed_bytes", "class_net_slabs",
  "class_recycle_ratio", "class_lock_contention_ratio", "class_new_slabs_total", "sampled_allocs_total",
  "sampled_alloc_cpu_seconds_total", "sampled_alloc_wait_seconds_total", "madvise_failures_total", "out_of_memory_total",
  "over_budget_total"].map(n => PREFIX + n));
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES = { "\\n": "\n", "\\\\": "\\", '\\"': '"' };

function parse(text) {
  const m = new Map();
  for (const line of text.split("\n")) {
    const end = line.search(/[{ ]/), name = line.slice(0, end);
    if (!WANTED.has(name)) continue;
    const labels = {};
    for (const [, k, v] of line.slice(end).matchAll(LABEL)) labels[k] = v.replace(/\\[n\\"]/g, e => ESCAPES[e]);
    if (!m.has(name)) m.set(name, []);
    m.get(name).push({ labels, v: Number(line.slice(line.lastIndexOf(" ") + 1)) });
  }
  return m;
}

const rows = (s, name) => s.m && s.m.get(PREFIX + name) || [];
const total = (s, name) => rows(s, name).reduce((sum, r) => sum + r.v, 0);

/* Growth per second between two samples; null where the program has begun anew. */
function rate(before, now, f) {
  if (!before) return null;
  const grown = f(now) - f(before), time = now.t - before.t;
  return grown < 0 || time <= 0 ? null : grown / time;
}

// ---- figures: [{name, values}] from the samples; null: not measured ----

/* f(sample, the one before or null) of every sample. */
const each = f => samples.map((s, i) => s.m && f(s, i > 0 && samples[i - 1].m ? samples[i - 1] : null));
const added = values => values.every(v => v == null) ? null : values.reduce((sum, v) => sum + (v || 0), 0);

function largest(sums) {
  return [...sums].filter(([, v]) => v > 0).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
}

/* One series for each of the labels that have most, and one for the rest; f(now, before, label) is a value. */
function byLabel(name, f) {
  const sums = new Map();
  for (const s of samples) for (const r of rows(s, name)) sums.set(r.labels.label, (sums.get(r.labels.label) || 0) + r.v);
  const names = largest(sums), shown = names.slice(0, NAMES_SHOWN).sort();
  const series = shown.map(label => ({ name: label, values: each((s, before) => f(s, before, label)) }));
  const rest = names.slice(NAMES_SHOWN);
  if (rest.length) series.push({ name: rest.length + " more", values: each((s, before) => added(rest.map(l => f(s, before, l)))) });
  return series;
}
const ofLabel = (s, name, label) => (rows(s, name).find(r => r.labels.label === label) || { v: 0 }).v;
const summed = (name, words) => ({ name: words, values: each((s, before) => rate(before, s, x => total(x, name))) });
const mean = (name, words) => ({
  name: words,
  values: each((s, before) => {
    const of = rate(before, s, x => total(x, "sampled_allocs_total")), v = rate(before, s, x => total(x, name));
    return of ? 1e9 * v / of : null;
  }),
});

const figures = [
  { id: "by-label", unit: bytes, nothing: "no label held anything when asked; short phases come and go between two looks", series: () => byLabel("label_committed_bytes", (s, _, l) => ofLabel(s, "label_committed_bytes", l)) },
  { id: "by-phase", unit: bytes, series: () => {
    const held = s => total(s, "label_committed_bytes"), draining = s => total(s, "label_draining_bytes");
    return [{ name: "open phases", values: each(s => Math.max(0, held(s) - draining(s))) },
            { name: "draining phases", values: each(draining) },
            { name: "kept warm", values: each(s => Math.max(0, total(s, "committed_bytes") - held(s))) }];
  } },
  { id: "rate", unit: v => count(v) + "/s", series: () => byLabel("label_objects_allocated_total",
    (s, before, l) => rate(before, s, x => ofLabel(x, "label_objects_allocated_total", l))) },
  { id: "causes", unit: v => count(v) + "/s", series: () => [summed("class_slow_current_full_total", "full"),
    summed("class_slow_cache_miss_total", "miss"), summed("class_slow_current_null_total", "null"), summed("class_slow_epoch_closed_total", "closed")] },
  { id: "latency", unit: nanos, series: () => [mean("sampled_alloc_cpu_seconds_total", "running"), mean("sampled_alloc_wait_seconds_total", "waiting")] },
];

const colour = k => getComputedStyle(document.documentElement).getPropertyValue(k < 0 ? "--quiet" : "--c" + k % 8).trim();

const flat = s => !s.values.some(v => v > 0); // its line would hide the one below
const namesOf = series => series.map(s => s.name + (flat(s) ? " -" : "")).join("\n");
const clock = t => new Date(1000 * t).toLocaleTimeString([], { hour12: false });
const BINARY = Array.from({ length: 45 }, (_, k) => 2 ** k);

function makePlot(f, series) {
  if (f.plot) f.plot.destroy();
  const axis = { stroke: colour(-1), grid: { stroke: colour(-1) + "33", width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  f.names = namesOf(series);
  f.plot = new uPlot({
    width: f.box.clientWidth, height: f.box.clientHeight, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
    padding: [8, 12, 0, 0], scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
    axes: [{ ...axis, space: 75, size: 28, values: (_, ticks) => ticks.map(clock) },
           { ...axis, size: 70, space: 28, incrs: f.unit === bytes ? BINARY : undefined, values: (_, ticks) => ticks.map(f.unit) }],
    series: [{}, ...series.map((s, k) => ({ label: s.name, stroke: flat(s) ? "transparent" : colour(k), width: 1.5, fill: k === 0 ? colour(k) + "55" : undefined, points: { show: false } }))],
    bands: series.slice(1).map((_, k) => ({ series: [k + 2, k + 1], fill: colour(k + 1) + "55" })),
    hooks: { setCursor: [u => { f.at = u.cursor.idx; legend(f); }] },
  }, [[], ...series.map(() => [])], f.box);
}

/* Stacked: each line lies on those before it. */
function stack(series) {
  const sum = samples.map(() => 0);
  return series.map(s => s.values.map((v, i) => v == null ? null : (sum[i] += v)));
}

function legend(f) {
  const at = f.at != null && f.at < samples.length ? f.at : samples.length - 1, list = f.list; // the latest is never a gap
  while (list.children.length > f.shown.length) list.lastChild.remove();
  while (list.children.length < f.shown.length) {
    const item = document.createElement("li");
    item.append(document.createElement("i"), document.createTextNode(""));
    list.append(item);
  }
  f.shown.forEach((s, k) => {
    list.children[k].firstChild.style.background = `var(--c${k % 8})`;
    list.children[k].lastChild.data = `${s.name} ${s.values[at] == null ? "-" : f.unit(s.values[at])}`;
  });
  if (!f.shown.length) list.append(Object.assign(document.createElement("li"), { textContent: f.nothing || "nothing yet" }));
}

function drawFigure(f) {
  if (!f.list) {
    const figure = byId(f.id);
    f.box = document.createElement("div");
    f.box.className = "plot";
    f.box.setAttribute("role", "img");
    f.box.setAttribute("aria-label", figure.querySelector("h2").textContent + ", the last five minutes; the list that follows has the numbers");
    f.list = document.createElement("ul");
    f.list.className = "legend";
    if (window.uPlot) figure.append(f.box);
    figure.append(f.list);
  }
  f.shown = f.series();
  if (f.list.children.length && f.list.firstChild.children.length === 0) f.list.replaceChildren(); // the words for nothing
  legend(f);
  if (!window.uPlot) return;
  if (!f.plot || f.names !== namesOf(f.shown)) makePlot(f, f.shown);
  f.plot.setData([samples.map(s => s.t), ...stack(f.shown)]);
}

// ---- tiles and tables ----

/* Labels whose ended phases hold more objects than is expected of them, the oldest of them for longer than the daemon calls a leak; the largest first. */
function leaking(s) {
  const threshold = state.reports ? state.reports.leak_threshold_s : Infinity;
  return rows(s, "label_unexpected_draining_objects").filter(r => r.v > 0).map(r => ({
    label: r.labels.label, objects: r.v, phases: ofLabel(s, "label_unexpected_draining_phases", r.labels.label),
    bytes: ofLabel(s, "label_unexpected_draining_bytes", r.labels.label), oldest: ofLabel(s, "label_oldest_unexpected_seconds", r.labels.label),
  })).filter(l => l.oldest >= threshold).sort((a, b) => b.bytes - a.bytes);
}

function drawLeaks(leaks) {
  fill("leaks", leaks.slice(0, LEAKS_SHOWN).map(l => [l.label, count(l.phases), count(l.objects), bytes(l.bytes), age(l.oldest)]),
    state.reports ? `no ended phase has held objects for ${state.reports.leak_threshold_s} s` : "nothing yet");
  byId("more-leaks").textContent = leaks.length > LEAKS_SHOWN ? `and ${leaks.length - LEAKS_SHOWN} more labels that hold less` : "";
}

function drawTiles(before, s) {
  const allocated = x => total(x, "label_objects_allocated_total"), slow = x => total(x, "slow_path_hits_total");
  const made = rate(before, s, allocated), hits = rate(before, s, slow);
  const refused = total(s, "out_of_memory_total") + total(s, "over_budget_total"), failures = total(s, "madvise_failures_total");
  const leaks = state.reports ? leaking(s) : [];
  drawLeaks(leaks);
  const tiles = [["Resident", bytes(total(s, "rss_bytes"))], ["Committed", bytes(total(s, "committed_bytes"))],
    ["Live", bytes(total(s, "live_bytes"))], ["Objects", count(total(s, "live_objects"))],
    ["Allocations", made == null ? "-" : count(made) + "/s"], ["Slow path", made ? percent(Math.min(1, hits / made)) : "-"],
    ["Open / draining", count(total(s, "open_phases")) + " / " + count(total(s, "draining_phases"))],
    ["Leaking labels", count(leaks.length), leaks.length > 0], ["Failed", count(refused), refused > 0],
    ["Kernel refusals", count(failures), failures > 0]];
  const list = byId("tiles");
  tiles.forEach(([name, value, bad], k) => {
    if (!list.children[k]) {
      const tile = document.createElement("div");
      tile.append(document.createElement("dt"), document.createElement("dd"));
      list.append(tile);
      tile.firstChild.textContent = name;
    }
    list.children[k].lastChild.textContent = value;
    list.children[k].lastChild.className = bad ? "bad" : "";
  });
}

function fill(id, lines, nothing) {
  const body = byId(id).querySelector("tbody"), width = byId(id).querySelectorAll("thead th").length;
  body.replaceChildren(...(lines.length ? lines : [[nothing]]).map(line => {
    const tr = document.createElement("tr");
    tr.append(...line.map((text, k) => {
      const cell = document.createElement(k === 0 && lines.length ? "th" : "td");
      if (cell.tagName === "TH") cell.scope = "row";
      cell.textContent = text;
      return cell;
    }));
    if (!lines.length) tr.firstChild.colSpan = width, tr.firstChild.className = "empty";
    return tr;
  }));
}

function drawClasses(before, s) {
  const of = (x, name, c) => (rows(x, name).find(r => r.labels.class === c) || { v: 0 }).v;
  const classes = rows(s, "class_new_slabs_total").filter(r => r.v > 0).map(r => r.labels);
  const last = rows(s, "class_new_slabs_total").length - 1;
  fill("classes", classes.map(({ class: c, object_size: size }) => [
    size !== "0" ? size : Number(c) === last ? "large" : "mixed", bytes(of(s, "class_live_bytes", c)), bytes(of(s, "class_committed_bytes", c)), count(of(s, "class_net_slabs", c)),
    count(rate(before, s, x => of(x, "class_slow_path_hits_total", c))), percent(of(s, "class_recycle_ratio", c)),
    percent(of(s, "class_lock_contention_ratio", c))]), "no size was used yet");
}

function drawReports(r) {
  byId("source").textContent = r.source === "idle" ? "idle (tslabd --pattern=burst runs a load)" : "pattern " + r.source;
  fill("receipts", r.receipts.map(x => [x.label, x.era, count(x.slabs), bytes(x.madvise_bytes),
    x.rss_before ? bytes(x.rss_before - x.rss_after) : "-"]), "no epoch of the ring has ended yet");
  const longest = Math.max(1e-3, ...r.phases.map(p => p.age_s)), list = byId("timeline").querySelector("ol");
  list.replaceChildren(...r.phases.map(p => {
    const item = document.createElement("li"), name = document.createElement("span"), track = document.createElement("span"),
      bar = document.createElement("b"), words = document.createElement("span");
    item.className = p.open ? "open" : "draining";
    name.textContent = name.title = p.label || "(unlabeled)";
    track.className = "track";
    track.append(bar);
    bar.style.width = 100 * p.age_s / longest + "%";
    words.textContent = `${p.open ? "open" : "draining"} ${age(p.age_s)}, ${bytes(p.committed_bytes)}`;
    item.title = `era ${p.era}: ${p.live_objects} live objects, ${p.refcount} references`;
    item.append(name, track, words);
    return item;
  }));
  const left = r.phase_count - r.phases.length;
  byId("more-phases").textContent = left > 0 ? `and ${count(left)} more, which the figures by label have` : "";
  if (!r.phases.length) list.append(Object.assign(document.createElement("li"), { className: "empty", textContent: "no phase holds anything" }));
}

// ---- asking ----

async function get(path) {
  const reply = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(10000) });
  if (!reply.ok) throw new Error(path + ": " + reply.status);
  return reply;
}

function tell(words, kind) {
  if (byId("state").textContent !== words) byId("state").textContent = words;
  byId("state").className = kind;
}

async function ask() {
  const s = { t: Date.now() / 1000, m: parse(await (await get("/metrics")).text()) }, before = samples[samples.length - 1];
  if (before && total(before, "uptime_seconds") > total(s, "uptime_seconds")) samples.length = 0; // another process
  if (before && s.t - before.t > GAP_S) samples.push({ t: (before.t + s.t) / 2, m: null });
  samples.push(s);
  while (samples[0].t < s.t - KEPT_S || !samples[0].m) samples.shift();
  if (state.turn++ % 2 === 0) drawReports(state.reports = await (await get("/reports.json")).json());
  const last = samples.length > 1 && samples[samples.length - 2].m ? samples[samples.length - 2] : null;
  drawTiles(last, s);
  drawClasses(last, s);
  figures.forEach(drawFigure);
}

async function turn() {
  const begin = Date.now();
  if (!state.paused && !document.hidden) {
    try {
      await ask();
      if (!state.paused) tell("live", "good"); // not when it was paused meanwhile
    } catch (e) {
      const last = samples[samples.length - 1];
      if (!state.paused) tell("no answer (" + e.message + ")" + (last ? "; figures of " + clock(last.t) : ""), "bad");
    }
  }
  setTimeout(turn, samples.length === 1 ? 200 : Math.max(200, EVERY_MS - (Date.now() - begin))); // the second brings rates
}

byId("pause").addEventListener("click", () => {
  state.paused = !state.paused;
  byId("pause").setAttribute("aria-pressed", String(state.paused));
  byId("pause").textContent = state.paused ? "Go on" : "Pause";
  if (state.paused) tell("paused", "");
});
addEventListener("resize", () => figures.forEach(f => f.plot && f.plot.setSize({ width: f.box.clientWidth, height: f.box.clientHeight })));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => figures.forEach(f => { f.names = null; f.shown && drawFigure(f); }));
byId("noplots").hidden = Boolean(window.uPlot);
turn();

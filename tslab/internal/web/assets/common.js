/* common.js - numbers as words, and elements from text. Text is only ever set as text: labels are the program's, and may hold anything. */
"use strict";

const byId = id => document.getElementById(id);

function scaled(v, base, units) {
  let k = 0;
  while (Math.abs(v) >= base && k < units.length - 1) v /= base, k++;
  return (k === 0 ? Math.round(v) : v.toFixed(Math.abs(v) < 10 ? 2 : Math.abs(v) < 100 ? 1 : 0)) + units[k];
}
const bytes = v => v == null ? "-" : scaled(v, 1024, [" B", " KiB", " MiB", " GiB", " TiB", " PiB"]);
const signed = v => v == null ? "-" : (v > 0 && bytes(v) !== "0 B" ? "+" : "") + bytes(v).replace("-0 B", "0 B");
const count = v => v == null ? "-" : Number.isInteger(v) || Math.abs(v) >= 100 ? scaled(v, 1000, ["", "k", "M", "G", "T"]) : v.toFixed(Math.abs(v) < 10 ? 2 : 1);
const percent = v => v == null || Number.isNaN(v) ? "-" : v === 0 ? "0 %" : (100 * v).toFixed(v < 0.1 ? 2 : 1) + " %";
const nanos = v => v == null ? "-" : v < 1e3 ? v.toFixed(0) + " ns" : v < 1e6 ? (v / 1e3).toFixed(1) + " us" : (v / 1e6).toFixed(1) + " ms";
const many = (n, one, some) => count(n) + " " + (n === 1 ? one : some);
function span(s) {
  if (s == null) return "-";
  if (s < 1) return (1000 * s).toFixed(0) + " ms";
  if (s < 120) return s.toFixed(s < 10 ? 1 : 0) + " s";
  if (s < 7200) return (s / 60).toFixed(0) + " min";
  return s < 172800 ? (s / 3600).toFixed(1) + " h" : (s / 86400).toFixed(0) + " d";
}

/* An element with attributes and children; strings are text. */
function make(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {}))
    if (k === "class") e.className = v;
    else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v !== null && v !== false) e.setAttribute(k, v);
  e.append(...children.filter(c => c != null));
  return e;
}

/* Puts children into a box, in one step. If one of those that go had the focus, the new one with the same data-focus gets it, of several the nearest to where it
   was; if none has, what holds the box gets it. */
function renew(box, children) {
  const places = () => [...box.querySelectorAll("[data-focus]")], at = places().indexOf(document.activeElement), focused = at < 0 ? null : document.activeElement.dataset.focus;
  box.replaceChildren(...children);
  if (focused == null) return;
  const now = places(), same = now.map((e, k) => k).filter(k => now[k].dataset.focus === focused).sort((a, b) => Math.abs(a - at) - Math.abs(b - at));
  (now[same[0]] || box.closest("[tabindex]"))?.focus({ preventScroll: true });
}

/* Puts rows into a table's body: each a list of cells, text or elements, the first of which names the row. Rows stay where they are when nothing has changed. */
function fill(id, rows, nothing) {
  const body = byId(id).querySelector("tbody"), width = byId(id).querySelectorAll("thead th").length;
  const key = JSON.stringify(rows.map(r => r.map(c => c instanceof Node ? c.outerHTML : c)));
  if (body.dataset.key === key && body.children.length) return;
  body.dataset.key = key;
  renew(body, rows.length ? rows.map(cells => make("tr", {}, ...cells.map((c, k) => make(k === 0 ? "th" : "td", k === 0 ? { scope: "row" } : {}, c)))) :
    [make("tr", {}, make("td", { colspan: width, class: "empty" }, nothing))]);
}

function say(e, words) {
  if (e.textContent !== words) e.textContent = words;
}

async function get(path) {
  const reply = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(10000) });
  if (!reply.ok) throw new Error((await reply.text()).trim().slice(0, 300) || String(reply.status));
  return reply.json();
}

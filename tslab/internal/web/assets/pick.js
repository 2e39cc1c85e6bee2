/* pick.js - the list of processes, asked for every two seconds while somebody looks. */
"use strict";

function draw(list) {
  fill("processes", list.map(p => {
    const name = make("span", { class: "process" }, make("a", { href: `/processes/${p.pid}/`, "data-focus": String(p.pid), class: "command", title: p.command }, p.command || "?"), ` ${p.pid}`);
    if (p.error) return [name, p.error, "-", "-", "-", "-", "-", "-"];
    return [name, p.state + (p.allocators > 1 ? `, ${p.allocators} allocators` : ""), bytes(p.committed_bytes), bytes(p.live_bytes), p.growth_per_second > 0 ? bytes(p.growth_per_second) : "-",
      p.limit_ns ? span(p.limit_ns / 1e9) : "-", count(p.open_phases), p.age_seconds == null ? "-" : span(p.age_seconds) + " ago"];
  }), "no process publishes its statistics");
}

async function turn() {
  if (!document.hidden) {
    try {
      draw(await get("/processes.json"));
      say(byId("state"), "live"), byId("state").className = "good";
    } catch (e) {
      say(byId("state"), "no answer: " + e.message), byId("state").className = "bad";
    }
  }
  setTimeout(turn, 2000);
}
turn();

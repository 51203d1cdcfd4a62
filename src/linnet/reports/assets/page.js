"use strict";
const COLOURS = ["#4269d0","#efb118","#ff725c","#6cc5b0","#3ca951","#a463f2","#97bbf5","#9c6b4e","#e377c2","#7f8fa6"];
const $ = (id) => document.getElementById(id);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const count = (n) => Math.round(n).toLocaleString("en");
function bytes(n) { const u = ["bytes","kB","MB","GB","TB","PB"]; let p = 0; while (n >= 1000 && p < 5) { n /= 1000; p++; } return n.toFixed(p ? 1 : 0) + " " + u[p]; }
function time(s) { if (s == null) return "–"; if (s < 0) return "-" + time(-s); if (s === 0) return "0 s"; if (s < 1e-3) return (1e6 * s).toFixed(0) + " µs"; if (s < 1) return (1e3 * s).toFixed(1) + " ms"; if (s < 60) return s.toFixed(2) + " s"; if (s < 3600) return Math.floor(s / 60) + ":" + String(Math.floor(s % 60)).padStart(2, "0") + " min"; return (s / 3600).toFixed(2) + " h"; }
function el(tag, attrs, ...kids) { const e = document.createElement(tag); for (const k in attrs || {}) { if (k === "onclick") e.onclick = attrs[k]; else e.setAttribute(k, attrs[k]); } for (const k of kids) if (k != null) e.append(k); return e; }
function tip(text, ev) { const t = $("tip"); if (!text) { t.style.display = "none"; return; } t.textContent = text; t.style.display = "block"; t.style.left = Math.min(ev.clientX + 12, innerWidth - t.offsetWidth - 8) + "px"; t.style.top = (ev.clientY + 14) + "px"; }
let DATA = null, picked = null, view = null, follow = true;

function canvas(id, height) {
  const c = $(id), w = c.clientWidth || c.parentNode.clientWidth, r = window.devicePixelRatio || 1;
  c.style.height = height + "px"; c.width = w * r; c.height = height * r;
  const g = c.getContext("2d"); g.scale(r, r); g.clearRect(0, 0, w, height); g.font = "11px system-ui,'DejaVu Sans',sans-serif";
  return [c, g, w];
}
function job() { return DATA.jobs.find((j) => j.job === picked) || DATA.jobs[DATA.jobs.length - 1]; }
function span(j) { let end = j.seconds || 0; for (const s of j.spans) end = Math.max(end, s[2] + s[3]); for (const s of j.samples) end = Math.max(end, s[0]); return Math.max(end, 1e-6); }
function scale(most) {
  const p = Math.pow(10, Math.floor(Math.log10(most / 5))), step = [1, 2, 5, 10].map((k) => k * p).find((k) => k >= most / 5);
  return [step, Math.ceil(most / step) * step];
}
function number(v) { return v < 10 && v % 1 > 1e-9 ? v.toFixed(v < 0.1 ? 3 : 1) : count(Math.round(v)); }
function ticks(g, x0, x1, y, from, to) {
  const raw = (to - from) / 6, p = Math.pow(10, Math.floor(Math.log10(raw))), step = [1, 2, 5, 10].map((k) => k * p).find((k) => k >= raw);
  g.fillStyle = css("--soft"); g.textAlign = "center";
  for (let t = Math.ceil(from / step) * step; t <= to + 1e-12; t += step) g.fillText(time(Math.abs(t) < 1e-12 ? 0 : t).replace(".00", ""), x0 + (t - from) / (to - from) * (x1 - x0), y);
}

function timeline() {
  const j = job(), lanes = j.lanes.length || 1, row = lanes > 40 ? 6 : lanes > 12 ? 12 : 20, height = lanes * row + 24, left = 92;
  const [c, g, w] = canvas("timeline", height), total = span(j);
  if (!view || follow) view = [0, total];
  const [from, to] = view, x = (t) => left + (t - from) / (to - from) * (w - left - 8);
  g.fillStyle = css("--soft"); g.textAlign = "left";
  j.lanes.forEach((name, n) => { if (row > 6 || n % 5 === 0) g.fillText(name.length > 14 ? "…" + name.slice(-13) : name, 0, n * row + row / 2 + 4); g.fillStyle = css("--line"); g.fillRect(left, (n + 1) * row - 1, w - left, 1); g.fillStyle = css("--soft"); });
  g.save(); g.beginPath(); g.rect(left, 0, w - left - 8, height); g.clip();
  for (const [k, lane, start, secs] of j.spans) {
    if (start + secs < from || start > to) continue;
    g.fillStyle = COLOURS[k % COLOURS.length]; g.fillRect(x(start), lane * row + 1, Math.max(x(start + secs) - x(start) - (row > 6 ? .4 : 0), .7), row - 3);
  }
  g.fillStyle = css("--bad"); g.strokeStyle = css("--bad");
  (j.marks || []).forEach(([t, text]) => { g.setLineDash([3, 3]); g.beginPath(); g.moveTo(x(t), 0); g.lineTo(x(t), lanes * row); g.stroke(); g.setLineDash([]); g.fillText(text, x(t) + 3, 10); });
  j.failures.forEach(([t]) => { g.fillRect(x(t) - 1, 0, 2, lanes * row); });
  g.restore(); ticks(g, left, w - 8, height - 6, from, to);
  const at = (ev) => { const b = c.getBoundingClientRect(); return [from + (ev.clientX - b.left - left) / (w - left - 8) * (to - from), Math.floor((ev.clientY - b.top) / row)]; };
  c.onwheel = (ev) => { ev.preventDefault(); const [t] = at(ev), k = ev.deltaY > 0 ? 1.25 : .8; follow = false; view = [Math.max(0, t - (t - from) * k), Math.min(total, t + (to - t) * k)]; timeline(); };
  let drag = null; c.onpointerdown = (ev) => { drag = [ev.clientX, from, to]; c.setPointerCapture(ev.pointerId); };
  c.onpointerup = () => { drag = null; };
  c.ondblclick = () => { follow = true; timeline(); };
  c.onpointermove = (ev) => {
    if (drag) { const d = (drag[0] - ev.clientX) / (w - left - 8) * (drag[2] - drag[1]), lo = Math.max(-d + 0 > drag[1] ? -drag[1] : d, -drag[1]); follow = false; view = [drag[1] + lo, drag[2] + lo]; timeline(); c.onpointermove = c.onpointermove; return; }
    const [t, lane] = at(ev), hit = j.spans.find((s) => s[1] === lane && s[2] <= t && t <= s[2] + s[3]);
    tip(hit ? j.names[hit[0]] + (hit[4].length ? " " + hit[4][0] + "[" + hit[4].slice(1).join(", ") + "]" : " (several)") + "\n" + time(hit[3]) + " from " + time(hit[2]) : "", ev);
  };
  c.onpointerleave = () => tip("");
}

function chart(id, lines, j, unit, limit) {
  const height = 170, left = 58, [c, g, w] = canvas(id, height), total = span(j);
  const [step, top] = scale(Math.max(limit || 0, ...lines.flatMap((l) => l.points.map((p) => p[1]))) || 1);
  const x = (t) => left + t / total * (w - left - 8), y = (v) => height - 22 - v / top * (height - 34);
  g.strokeStyle = css("--line"); g.fillStyle = css("--soft"); g.textAlign = "right"; g.lineWidth = 1;
  for (let v = 0; v <= top * (1 + 1e-9); v += step) { g.beginPath(); g.moveTo(left, y(v)); g.lineTo(w - 8, y(v)); g.stroke(); g.fillText(unit(v), left - 6, y(v) + 4); }
  for (const l of lines) {
    g.beginPath(); l.points.forEach(([t, v], n) => { if (l.step && n) g.lineTo(x(t), y(l.points[n - 1][1])); n ? g.lineTo(x(t), y(v)) : g.moveTo(x(t), y(v)); });
    g.strokeStyle = l.colour; g.lineWidth = 1.8; g.stroke();
    if (l.fill && l.points.length) { g.lineTo(x(l.points[l.points.length - 1][0]), y(0)); g.lineTo(x(l.points[0][0]), y(0)); g.globalAlpha = .15; g.fillStyle = l.colour; g.fill(); g.globalAlpha = 1; }
  }
  if (limit) { g.strokeStyle = css("--bad"); g.setLineDash([5, 4]); g.beginPath(); g.moveTo(left, y(limit)); g.lineTo(w - 8, y(limit)); g.stroke(); g.setLineDash([]); }
  ticks(g, left, w - 8, height - 6, 0, total);
  c.onpointermove = (ev) => { const b = c.getBoundingClientRect(), t = (ev.clientX - b.left - left) / (w - left - 8) * total; tip(lines.map((l) => { const p = l.points.filter((q) => q[0] <= t).pop(); return p ? l.name + ": " + unit(p[1]) : ""; }).filter(Boolean).join("\n"), ev); };
  c.onpointerleave = () => tip("");
}
function legend(id, items) { $(id).replaceChildren(...items.map(([colour, text]) => { const i = el("i"); i.style.background = colour; return el("span", {}, i, text); })); }

function busy(j) {
  const edges = []; for (const s of j.spans) if (s[4].length || true) { edges.push([s[2], 1], [s[2] + s[3], -1]); }
  edges.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const total = span(j), bins = 240, sum = new Float64Array(bins + 1); let n = 0, last = 0;
  for (const [t, d] of edges) { let a = last; while (n && a < t) { const b = Math.min(Math.floor(a / total * bins), bins), e = Math.min(t, (b + 1) / bins * total); sum[b] += n * Math.max(e - a, 1e-12); a = Math.max(e, a + 1e-12); } last = t; n += d; }
  return Array.from(sum.slice(0, bins), (v, b) => [b / bins * total, v / (total / bins)]);
}
function rates(j, place) { const out = []; for (let n = 1; n < j.samples.length; n++) { const a = j.samples[n - 1], b = j.samples[n], d = b[0] - a[0]; if (d > 1e-3) out.push([b[0], Math.max(b[place] - a[place], 0) / d]); } return out; }

function matrices(j) {
  const box = $("mats"), arrays = j.tiles || []; $("matcard").hidden = !arrays.length; if (!arrays.length) return;
  box.replaceChildren(...arrays.map((a) => {
    const size = Math.max(3, Math.min(22, Math.floor(360 / Math.max(a.rows, a.columns, 1)))), c = el("canvas"), r = window.devicePixelRatio || 1;
    c.width = a.columns * size * r; c.height = a.rows * size * r; c.style.width = a.columns * size + "px"; c.style.height = a.rows * size + "px";
    const g = c.getContext("2d"); g.scale(r, r); g.fillStyle = css("--line"); g.fillRect(0, 0, a.columns * size, a.rows * size);
    const most = Math.max(1, ...a.cells.map((q) => Math.abs(q[2])));
    for (const [i, k, n] of a.cells) { g.globalAlpha = n < 0 ? .25 : .35 + .65 * Math.abs(n) / most; g.fillStyle = n < 0 ? css("--soft") : css("--accent"); g.fillRect(k * size, i * size, size - 1, size - 1); }
    for (const [i, k] of a.latest || []) { g.globalAlpha = 1; g.fillStyle = "#ff725c"; g.fillRect(k * size, i * size, size - 1, size - 1); }
    c.onpointermove = (ev) => { const b = c.getBoundingClientRect(), i = Math.floor((ev.clientY - b.top) / size), k = Math.floor((ev.clientX - b.left) / size), q = a.cells.find((z) => z[0] === i && z[1] === k); tip(a.name + "[" + i + ", " + k + "]: " + (q ? Math.abs(q[2]) + "× written" + (q[2] < 0 ? ", not needed any more" : "") : "not written"), ev); };
    c.onpointerleave = () => tip("");
    return el("figure", {}, c, el("figcaption", {}, a.name + ", " + a.rows + " × " + a.columns + " tiles, " + count(a.cells.length) + " written"));
  }));
}
function bag(j) {
  $("bagcard").hidden = !j.bag; if (!j.bag) return;
  const b = j.bag, colours = { done: css("--good"), running: css("--accent"), failed: css("--bad"), queued: css("--line") };
  legend("baglegend", Object.keys(colours).map((k) => [colours[k], k]));
  $("bagaxes").textContent = b.axes && b.axes.length ? (b.axes.length > 1 ? "Down: " + b.axes[0] + ", across: " + b.axes[1] : "Across: " + b.axes[0]) : "";
  $("bagmap").style.cssText = "display:grid;justify-content:start;grid-auto-columns:16px;grid-auto-rows:16px;overflow:auto";
  $("bagmap").replaceChildren(...b.jobs.map(([name, state, text, down, across]) => { const i = el("i"); i.style.cssText = "display:block;width:14px;height:14px;border-radius:3px;grid-row:" + (down + 1) + ";grid-column:" + (across + 1) + ";background:" + (colours[state] || colours.queued); i.onpointermove = (ev) => tip(name + ": " + state + (text ? "\n" + text : ""), ev); i.onpointerleave = () => tip(""); return i; }));
}

function render() {
  const j = job();
  $("title").textContent = DATA.title; $("sub").textContent = DATA.sub || "";
  if (!j) { $("content").hidden = true; $("empty").hidden = false; return; }
  $("content").hidden = false; $("empty").hidden = true;
  const last = j.samples[j.samples.length - 1] || [], peak = Math.max(0, ...j.samples.map((s) => s[7]));
  const things = j.bag ? "jobs" : "tasks", used = j.kernels.reduce((a, k) => a + k.seconds, 0), wall = j.seconds || span(j);
  const tiles = [[j.state, j.program], [count(j.done) + (j.done < j.tasks ? " / " + count(j.tasks) : ""), things + (j.done < j.tasks ? " done" : "")], [time(wall), j.state === "running" ? "so far" : "from start to end"]];
  const workers = last[4] || j.workers; if (workers) tiles.push([String(workers), workers === 1 ? "worker" : "workers"]);
  if (j.done && j.done < j.tasks && j.state === "running") tiles.push([time(wall * (j.tasks - j.done) / j.done), "left at this rate"]);
  if (used && j.workers) tiles.push([(100 * used / (wall * j.workers)).toFixed(0) + " %", "of the workers' time in kernels"]);
  if (j.flops) tiles.push([(j.flops * j.done / j.tasks / wall / 1e9).toFixed(1) + " GFLOP/s", DATA.peak ? "of " + (DATA.peak / 1e9).toFixed(0) + " that a matrix product reaches" : "operations a second"]);
  if (last[5] || last[6]) tiles.push([bytes((last[5] || 0) + (last[6] || 0)), "read and written" + (j.least ? "; each input and result once: " + bytes(j.least) : "")]);
  if (j.moved) tiles.push([bytes(j.moved), "between nodes by plan" + (j.bound != null ? "; bound " + bytes(j.bound) : "")]);
  if (peak) tiles.push([bytes(peak), "memory at most" + (j.budget ? "; budget for tiles " + bytes(j.budget) : "")]);
  if (j.hits != null) tiles.push([bytes(j.hits), "from workers' caches"]);
  if (j.cost != null) tiles.push(["$" + j.cost.toFixed(j.cost < 1 ? 4 : 2), "cost so far"]);
  $("tiles").replaceChildren(...tiles.map(([v, t]) => el("div", { class: "tile" }, el("b", { class: v === j.state ? j.state : "" }, v), el("span", {}, t))));
  $("jobs").replaceChildren(...DATA.jobs.slice(-30).reverse().map((q) => { const i = el("i"); i.style.width = (100 * q.done / Math.max(q.tasks, 1)) + "%"; return el("tr", { class: "pick" + (q === j ? " on" : ""), onclick: () => { picked = q.job; follow = true; render(); } }, el("td", {}, q.program), el("td", {}, el("span", { class: "state " + q.state }, q.state)), el("td", {}, el("div", { class: "bar" }, i)), el("td", { class: "n" }, count(q.done) + " of " + count(q.tasks)), el("td", { class: "n" }, time(q.seconds)), el("td", {}, q.engine || "")); }));
  $("jobscard").hidden = DATA.jobs.length < 2;
  $("error").hidden = !j.error; $("error").textContent = j.error;
  legend("kernelsl", j.names.map((n, k) => [COLOURS[k % COLOURS.length], n]));
  $("linecard").hidden = !j.spans.length;
  $("few").textContent = j.spans.length ? "Wheel: zoom. Drag: move. Double click: all of it." + (j.folded ? " " + count(j.folded) + " short tasks are drawn together with their neighbours." : "") + (j.untold > 0 ? " " + count(j.untold) + " tasks shorter than a millisecond are counted, not drawn." : "") : "";
  if (j.spans.length) timeline();
  $("parhead").textContent = j.bag ? "Jobs under way and jobs that wait" : "Tasks under way and tasks that wait";
  $("parcard").hidden = !j.spans.length && j.samples.length < 2;
  const ready = j.samples.map((s) => [s[0], s[2]]), running = j.spans.length ? busy(j) : j.samples.map((s) => [s[0], s[3]]);
  const cap = Math.max(j.workers * 2, ...running.map((p) => p[1]));
  legend("parl", [["#4269d0", things + " under way"], ["#efb118", "ready, waiting (drawn up to " + count(cap) + ")"], [css("--bad"), "workers"]]);
  chart("par", [{ name: "under way", colour: "#4269d0", points: running, fill: true }, { name: "ready", colour: "#efb118", points: ready.map(([t, v]) => [t, Math.min(v, cap)]), step: true }], j, number, j.workers);
  $("memcard").hidden = !peak;
  legend("meml", [["#a463f2", "memory of the process"]].concat(j.budget ? [[css("--bad"), "budget for tiles, on top of " + bytes(j.base || 0) + " at the start"]] : []));
  if (peak) chart("mem", [{ name: "memory", colour: "#a463f2", points: j.samples.map((s) => [s[0], s[7]]), fill: true }], j, bytes, j.budget ? j.budget + (j.base || 0) : 0);
  $("bytecard").hidden = j.samples.length < 2 || !(last[5] || last[6]);
  legend("bytel", [["#3ca951", "read by tasks"], ["#ff725c", "written"]].concat(j.least ? [[css("--bad"), "least: each input and result once"]] : []));
  if (j.samples.length > 1 && (last[5] || last[6])) chart("byte", [{ name: "read", colour: "#3ca951", points: j.samples.map((s) => [s[0], s[5]]) }, { name: "written", colour: "#ff725c", points: j.samples.map((s) => [s[0], s[6]]) }], j, bytes, j.least);
  $("ratecard").hidden = j.samples.length < 3;
  legend("ratel", [["#6cc5b0", j.flops ? "GFLOP a second" : things + " a second"]].concat(j.flops && DATA.peak ? [[css("--bad"), "a matrix product"]] : []));
  if (j.samples.length >= 3) chart("rate", [{ name: "rate", colour: "#6cc5b0", points: rates(j, 1).map(([t, v]) => [t, j.flops ? v * j.flops / j.tasks / 1e9 : v]), fill: true }], j, number, j.flops && DATA.peak ? DATA.peak / 1e9 : 0);
  const most = Math.max(1e-9, ...j.kernels.map((k) => k.seconds));
  $("kernelcard").hidden = !j.kernels.length;
  $("kernelhead").lastElementChild.previousElementSibling.textContent = j.of_kernels && j.state === "finished" ? "GFLOP/s" : "";
  $("kernels").replaceChildren(...j.kernels.map((k) => { const i = el("i"); i.style.width = (100 * k.seconds / most) + "%"; const at = j.names.indexOf(k.name); if (at >= 0) i.style.background = COLOURS[at % COLOURS.length]; return el("tr", {}, el("td", {}, k.name), el("td", { class: "n" }, count(k.tasks)), el("td", { class: "n" }, time(k.seconds)), el("td", { class: "n" }, time(k.seconds / Math.max(k.tasks, 1))), el("td", { class: "n" }, j.of_kernels && j.of_kernels[k.name] && j.state === "finished" ? (j.of_kernels[k.name] / Math.max(k.seconds, 1e-9) / 1e9).toFixed(1) : ""), el("td", {}, el("div", { class: "bar" }, i))); }));
  $("failcard").hidden = !j.failures.length && !j.retries;
  $("fails").replaceChildren(...j.failures.map(([t, task, kernel, error]) => el("tr", {}, el("td", {}, time(t)), el("td", {}, kernel + " " + task), el("td", {}, el("pre", {}, error)))));
  $("retries").textContent = j.retries ? j.retried || count(j.retries) + (j.bag ? (j.retries === 1 ? " server was" : " servers were") + " taken away under a job." : (j.retries === 1 ? " task was" : " tasks were") + " begun again.") : "";
  const notes = (DATA.notes || []).concat(j.notes || []);
  $("notecard").hidden = !notes.length;
  $("notes").replaceChildren(...notes.map(([k, v]) => el("tr", { class: "note" }, el("td", {}, k), el("td", {}, el("pre", {}, v)))));
  $("plancard").hidden = !j.plan && !j.source; $("plan").textContent = [j.plan, j.source].filter(Boolean).join("\n\n");
  $("planhint").textContent = j.plan ? "" : "No node was chosen for tasks: whoever is free takes the most urgent one.";
  const lines = (j.log || []).map(([t, text]) => [time(t), text]).concat(DATA.log || []);
  $("logcard").hidden = !lines.length; const log = $("log"), box = log.parentNode.parentNode, end = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
  log.replaceChildren(...lines.map(([t, text]) => el("tr", {}, el("td", {}, t), el("td", {}, el("pre", {}, text))))); if (end) box.scrollTop = box.scrollHeight;
  matrices(j); bag(j);
}
function show(data) { DATA = data; render(); document.body.dataset.ready = "yes"; }
addEventListener("resize", () => { if (DATA) render(); });

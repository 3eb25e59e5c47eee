// The page of the daemon. Text from others only ever becomes text nodes, never markup.
"use strict";

const at = id => document.getElementById(id);
let token = sessionStorage.getItem("token") || "";
let chosen = 0; // the job that is shown
let pending = false; // a report is on its way
const jobs = new Map();
const compared = []; // names of kernels whose schedules stand side by side

// ---- elements ----

function make(tag, content, attributes = {}) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...(Array.isArray(content) ? content : [String(content ?? "")]));
  return e;
}

const cell = content => make("td", content);
const figure = (x, digits = 4) => make("td", Number.isFinite(x) ? String(+x.toPrecision(digits)) : "-", { class: "n" });

function button(text, act) {
  const b = make("button", text, { type: "button" });
  b.addEventListener("click", act);
  return b;
}

function say(text) {
  at("message").textContent = text;
  at("message").hidden = !text;
}

// ---- asking ----

async function ask(path, options = {}) {
  const r = await fetch(path, { ...options, headers: { Authorization: "Bearer " + token } });
  if (r.ok) return r;
  if (r.status === 401) leave();
  const body = await r.json().catch(() => ({}));
  throw new Error(body.error || "the daemon answers " + r.status);
}

const tell = promise => promise.then(() => say(""), e => say(e.message));

function leave() {
  token = "";
  sessionStorage.removeItem("token");
  at("door").hidden = false;
  at("inside").hidden = true;
}

// ---- the list ----

function actions(j) {
  const change = (word, method = "POST") => button(word, event => {
    event.stopPropagation();
    tell(ask("/v1/jobs/" + j.id + (method === "POST" ? "/" + word : ""), { method }));
  });
  if (j.state === "running" || j.state === "queued" || j.state === "interrupted") return [change("pause"), change("cancel")];
  if (j.state === "paused") return [change("resume"), change("cancel")];
  return [change("remove", "DELETE")];
}

function row(j) {
  const open = button(String(j.id), () => show(j.id));
  const bar = j.trials ? make("progress", "", { max: j.trials, value: Math.min(j.tried, j.trials), "aria-label": "trials" }) : "";
  const state = j.wish ? j.state + ", " + j.wish + " asked" : j.state;
  return make("tr", [cell([open]), cell(j.name), cell(j.user), cell(state),
    cell([bar, " " + j.tried + (j.trials ? " of " + j.trials : "")]), cell(j.cause), cell(actions(j))],
    { "data-job": j.id, "data-state": j.state });
}

function drawJob(j) {
  const old = document.querySelector('tr[data-job="' + Number(j.id) + '"]');
  const focused = old && old.contains(document.activeElement) ? [...old.querySelectorAll("button")].indexOf(document.activeElement) : -1;
  const now = row(j);
  if (old) old.replaceWith(now);
  else at("list").prepend(now);
  if (focused >= 0) (now.querySelectorAll("button")[focused] || now.querySelector("button")).focus();
}

// ---- one job ----

function plot(k) {
  const name = "http://www.w3.org/2000/svg", width = 240, height = 48;
  const svg = document.createElementNS(name, "svg"), line = document.createElementNS(name, "polyline");
  const top = k.curve.length ? k.curve[0][1] : 1;
  const points = [];
  let y = null;
  for (const [trial, ms] of k.curve) {
    const x = width * trial / k.trials, now = height - (height - 4) * ms / top;
    if (y !== null) points.push(x.toFixed(1) + "," + y.toFixed(1));
    points.push(x.toFixed(1) + "," + now.toFixed(1));
    y = now;
  }
  for (const [key, value] of [["viewBox", "0 0 240 48"], ["width", width], ["height", height], ["role", "img"]]) svg.setAttribute(key, value);
  svg.setAttribute("aria-label", "best time over " + k.trials + " trials");
  for (const [key, value] of [["fill", "none"], ["stroke", "currentColor"], ["points", points.join(" ")]]) line.setAttribute(key, value);
  svg.append(line);
  return svg;
}

function choose(key) {
  const i = compared.indexOf(key);
  if (i >= 0) compared.splice(i, 1);
  else compared.push(key);
  if (compared.length > 2) compared.shift();
}

// Two lists of lines: those of the longest common subsequence are the same, the others differ.
function common(a, b) {
  const length = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--)
    for (let k = b.length - 1; k >= 0; k--)
      length[i][k] = a[i] === b[k] ? length[i + 1][k + 1] + 1 : Math.max(length[i + 1][k], length[i][k + 1]);
  const same = [new Set(), new Set()];
  for (let i = 0, k = 0; i < a.length && k < b.length;)
    if (a[i] === b[k]) { same[0].add(i++); same[1].add(k++); }
    else if (length[i + 1][k] >= length[i][k + 1]) i++;
    else k++;
  return same;
}

function drawCompare(kernels) {
  const two = compared.map(key => kernels.find(k => k.key === key)).filter(Boolean);
  const lines = two.map(k => k.schedule.split("\n"));
  const same = two.length === 2 ? common(...lines) : null;
  at("compare").replaceChildren(...two.map((k, i) => make("pre", [k.task + "\n\n",
    ...lines[i].map((text, n) => make("span", text + "\n", same && !same[i].has(n) ? { class: "differs" } : {}))])));
  if (!two.length) at("compare").textContent = "Choose one or two kernels above.";
}

function drawKernel(k, redraw) {
  const gain = k.before_ms > 0 && k.after_ms > 0 ? k.before_ms / k.after_ms : NaN;
  const box = make("input", "", { type: "checkbox", "aria-label": "compare " + k.task });
  box.checked = compared.includes(k.key);
  box.addEventListener("change", () => { choose(k.key); redraw(); });
  return make("tr", [make("td", k.task, { title: k.summary }), figure(k.uses), figure(k.trials, 9), figure(k.failed, 9), figure(k.before_ms),
    figure(k.after_ms), figure(gain, 3), cell([plot(k)]), cell([box])]);
}

function drawReport(r) {
  const redraw = () => {
    at("kernels").replaceChildren(...r.kernels.map(k => drawKernel(k, redraw)));
    drawCompare(r.kernels);
  };
  at("job").hidden = false;
  at("title").textContent = "Job " + r.job.id + ": " + r.job.name;
  at("total").textContent = r.job.state + ", " + r.total.trials + " trials" +
    (r.total.after_ms > 0 ? ", end to end " + r.total.before_ms.toPrecision(4) + " ms before, " + r.total.after_ms.toPrecision(4) + " ms after" : "") +
    (r.end_to_end ? "; the module is the " + r.end_to_end.module + " one" : "") +
    (r.end_to_end && r.end_to_end.pairs ? " (in turns: " + r.end_to_end.untuned_ms.toPrecision(4) + " ms untuned, " +
      r.end_to_end.tuned_ms.toPrecision(4) + " ms tuned)" : "");
  redraw();
  at("errors").replaceChildren(...r.errors.map(e => make("tr", [cell(e.task), cell(e.status), cell(e.kind), figure(e.count, 9), cell(e.example)])));
}

async function refresh() {
  if (!chosen || pending) return;
  pending = true;
  try {
    drawReport(await (await ask("/v1/jobs/" + chosen + "/files/report")).json());
  } finally {
    pending = false;
  }
}

function show(id) {
  chosen = id;
  compared.length = 0;
  tell(refresh());
}

async function download(name) {
  const blob = await (await ask("/v1/jobs/" + chosen + "/files/" + name)).blob();
  const link = make("a", "", { href: URL.createObjectURL(blob), download: name === "module" ? "job-" + chosen + ".tec" : "job-" + chosen + "." + name });
  link.click();
  URL.revokeObjectURL(link.href);
}

// ---- events ----

function take(event) {
  const kind = /^event: (.*)$/m.exec(event), data = /^data: (.*)$/m.exec(event);
  if (!kind || !data) return;
  if (kind[1] === "gone") {
    jobs.delete(Number(data[1]));
    const old = document.querySelector('tr[data-job="' + Number(data[1]) + '"]');
    if (old) old.remove();
    return;
  }
  const j = JSON.parse(data[1]);
  jobs.set(j.id, j);
  drawJob(j);
  if (j.id === chosen) refresh().catch(e => say(e.message));
}

// Server-sent events by fetch, since EventSource sends no token.
async function follow() {
  const reader = (await ask("/v1/events")).body.pipeThrough(new TextDecoderStream()).getReader();
  at("live").textContent = "live";
  for (let rest = "";;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    events.forEach(take);
  }
}

async function keepFollowing() {
  while (token) {
    await follow().catch(e => say(e.message));
    at("live").textContent = "not connected";
    await new Promise(go => setTimeout(go, 2000));
  }
}

// ---- submitting ----

async function submit() {
  const file = at("file").files[0], query = new URLSearchParams({ name: file.name });
  if (at("trials").value) query.set("trials", at("trials").value);
  if (at("priority").value !== "0") query.set("priority", at("priority").value);
  for (const dim of at("dims").value.split(/[\s,]+/).filter(Boolean)) query.append("dim", dim);
  if (at("class").value.trim()) query.set("device-class", at("class").value.trim());
  const j = await (await ask("/v1/jobs?" + query, { method: "POST", body: file })).json();
  jobs.set(j.id, j);
  drawJob(j);
  show(j.id);
}

function drop(event) {
  event.preventDefault();
  at("drop").classList.remove("over");
  if (event.dataTransfer.files.length) at("file").files = event.dataTransfer.files;
}

// ---- records and devices ----

async function search() {
  const r = await (await ask("/v1/records?" + new URLSearchParams({ search: at("words").value }))).json();
  at("found").replaceChildren(...r.records.map(k => make("tr", [cell(k.summary), cell(k.target), figure(k.ok, 9), figure(k.failed, 9),
    figure(k.best_ms), cell([make("details", [make("summary", "show"), make("pre", k.definition)])])])));
  say(r.found > r.records.length ? "The first " + r.records.length + " of " + r.found + " kernels." : "");
}

// Devices of a pool have the state that its tracker gives them, with the reason where one is set aside.
function stateOf(d) {
  if (d.here) return "here, " + d.cores + " cores";
  if (!d.state) return "elsewhere";
  return d.state + (d.reason ? ": " + d.reason : "") + (d.job ? ", job " + d.job : "");
}

async function devices() {
  const r = await (await ask("/v1/devices")).json();
  at("pool").textContent = r.trouble ? "The pool: " + r.trouble : "";
  at("machines").replaceChildren(...r.devices.map(d => make("tr", [make("td", d.name, { title: d.text }), cell(d.class || "-"), cell(stateOf(d)),
    figure(d.trials, 9), figure(d.failed, 9), cell(d.trials ? (100 * d.failed / d.trials).toFixed(1) + " %" : "-"), figure(d.load, 3),
    cell(d.celsius ? d.celsius.toFixed(0) + " °C" : "-"), cell(d.last ? new Date(d.last * 1000).toLocaleString() : "-")])));
}

function view(name) {
  for (const b of document.querySelectorAll("nav button")) {
    b.setAttribute("aria-pressed", String(b.dataset.view === name));
    at(b.dataset.view).hidden = b.dataset.view !== name;
  }
  if (name === "records") tell(search());
  if (name === "devices") tell(devices());
}

// ---- the beginning ----

// The states of devices while somebody looks at them.
setInterval(() => {
  if (token && !at("devices").hidden && !at("inside").hidden) devices().catch(e => say(e.message));
}, 3000);

// Curves move while a job runs: not every trial changes the job's row.
setInterval(() => {
  const j = jobs.get(chosen);
  if (token && j && j.state === "running") refresh().catch(e => say(e.message));
}, 1000);

function enter() {
  at("door").hidden = true;
  at("inside").hidden = false;
  view("jobs");
  keepFollowing();
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem("theme", name);
}

const theme = localStorage.getItem("theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
at("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  setTheme(dark === "dark" ? "light" : "dark");
});
at("door").addEventListener("submit", event => {
  event.preventDefault();
  token = at("token").value.trim();
  sessionStorage.setItem("token", token);
  enter();
});
at("submit").addEventListener("submit", event => { event.preventDefault(); tell(submit()); });
at("search").addEventListener("submit", event => { event.preventDefault(); tell(search()); });
at("drop").addEventListener("dragover", event => { event.preventDefault(); at("drop").classList.add("over"); });
at("drop").addEventListener("dragleave", () => at("drop").classList.remove("over"));
at("drop").addEventListener("drop", drop);
for (const b of document.querySelectorAll("nav button")) b.addEventListener("click", () => view(b.dataset.view));
for (const b of document.querySelectorAll("button[data-file]")) b.addEventListener("click", () => tell(download(b.dataset.file)));
if (location.hash.startsWith("#token=")) {
  token = location.hash.slice(7);
  sessionStorage.setItem("token", token);
  history.replaceState(null, "", "/");
}
if (token) enter();
else at("door").hidden = false;

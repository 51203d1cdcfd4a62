const query = new URLSearchParams(location.search), where = query.get("source") || "";
const token = query.get("token") || sessionStorage.getItem("token") || ""; if (token) sessionStorage.setItem("token", token);
if (query.get("token")) { query.delete("token"); history.replaceState(null, "", "?" + query.toString()); }
const stream = new EventSource("events?source=" + encodeURIComponent(where) + (token ? "&token=" + token : ""));
const state = el("span", { class: "state" }, "connecting"), cancel = el("button", { id: "cancel", onclick: async () => {
  const given = token || prompt("Token (it was printed when the dashboard was started)"); if (!given) return;
  const got = await fetch("cancel?source=" + encodeURIComponent(where), { method: "POST", headers: { "X-Linnet-Token": given } });
  state.textContent = (await got.json()).said; } }, "Cancel"); cancel.hidden = true;
$("above").append(el("p", {}, state, " ", cancel)); const list = el("table", { id: "list" }); $("above").append(list);
stream.onmessage = (m) => { const d = JSON.parse(m.data); state.textContent = d.problem || "live"; if (d.problem) return;
  list.replaceChildren(...(d.list || []).map((e) => el("tr", {}, el("td", {}, el("span", { class: "state" }, e.kind)), el("td", {}, el("a", { href: e.kind === "session" ? e.address : "?source=" + encodeURIComponent(e.address) }, e.name)), el("td", {}, new Date(1000 * e.begun).toLocaleString()))));
  cancel.hidden = !d.jobs.some((j) => j.state === "running"); show(d); $("empty").hidden = d.jobs.length > 0 || !!d.list; };
stream.onerror = () => { state.textContent = "the session has ended, or cannot be reached"; };

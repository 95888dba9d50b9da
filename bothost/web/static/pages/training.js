// Trainings: the curves of running and finished ones, from their metrics.jsonl.
import { html, useEffect, useState } from "../html.js";
import { explained, get } from "../api.js";
import { Curve } from "../curve.js";
import { Missing, Problem } from "../problem.js";

const REFRESH_MS = 5000;

export function Page({ here, t, go }) {
  const [list, setList] = useState(null);
  const [curves, setCurves] = useState(null);
  const [problem, setProblem] = useState("");
  const failed = (error) => setProblem(explained(error));
  const name = new URLSearchParams(here.split("?")[1] ?? "").get("run") ?? list?.trainings[0]?.name;
  useEffect(() => { get("/api/training").then(setList, failed); }, []);
  useEffect(() => {
    if (!name) return undefined;
    let left = false; // for another training: a late answer is not about that one
    const load = () => get("/api/training/curves", { name }).then((found) => { if (!left) { setCurves(found); setProblem(""); } }, failed);
    load();
    const timer = setInterval(load, REFRESH_MS);
    return () => { left = true; clearInterval(timer); };
  }, [name]);
  const notice = problem && html`<${Problem} text=${problem} />`;
  if (!list) return html`<h1>${t("Training")}</h1>${problem ? html`<${Missing} text=${problem} t=${t} />` : html`<p class="dim">…</p>`}`;
  const { iteration = [], ...figures } = curves ?? {};
  const pointsOf = (values) => new Map(values.map((value, i) => [iteration[i] ?? i, value]).filter(([, value]) => value !== null));
  return html`<h1>${t("Training")}</h1>${notice}
    ${list.trainings.length === 0 ? html`<p class="notice">${t("No training is here yet.")} <code>bothost train</code> ${t("writes to")} <code>${list.folder}</code>${t(".")}</p>` : html`
      <form class="filters"><label>${t("Training")}<select value=${name} onChange=${(event) => go(`/training?run=${encodeURIComponent(event.target.value)}`)}>
        ${list.trainings.map((run) => html`<option value=${run.name}>${run.name} · ${new Date(run.written_us / 1000).toLocaleString()}</option>`)}</select></label></form>
      <div class="cards-list">${Object.entries(figures).map(([label, values]) => html`<${Curve} key=${`${name}-${label}`} title=${label} lines=${[{ label, points: pointsOf(values) }]} t=${t} />`)}</div>`}`;
}

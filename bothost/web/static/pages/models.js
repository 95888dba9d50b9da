// Models: versions, what each alias stands for, and how it came about. Operators move aliases here.
import { html, useEffect, useState } from "../html.js";
import { explained, get, post } from "../api.js";
import { said } from "../i18n.js";
import { Job } from "../job.js";
import { gameName } from "../names.js";
import { Missing, Problem } from "../problem.js";

const TRIALS = ["challenger", "canary", "shadow"]; // aliases that no package has
const when = (us) => (us ? new Date(us / 1000).toLocaleString() : "");

function Strategy({ found, reload, t }) {
  const [problem, setProblem] = useState("");
  const [version, setVersion] = useState(found.versions.at(-1).version);
  const [alias, setAlias] = useState("champion");
  const [game, setGame] = useState(found.games[0]);
  const [job, setJob] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => { if (found.last) setJob(found.last); }, [found.last]); // one that has ended goes on showing its result
  const change = (path, body, question) => {
    if (confirm(question)) post(path, body).then(() => { setProblem(""); reload(); }, failed);
  };
  const failed = (error) => setProblem(explained(error));
  const gate = () => {
    if (!confirm(`${found.strategy}:${version}${t(": ")}${t("A match of up to 200 duplicate deals. It becomes champion only if it is shown to be better.")}`)) return;
    setBusy(true);
    post("/api/models/gate", { strategy: found.strategy, version, ...(found.games.length > 1 && { game }) }).then(({ job: started }) => { setProblem(""); setJob(started); return reload(); }, failed)
      .then(() => setBusy(false));
  };
  const aliasesOf = (name) => Object.entries(found.aliases).filter(([, stands]) => stands === name).map(([label]) => label);
  const promotions = found.history.filter((moved) => moved.alias === alias).reduce((count, { kind }) => (kind === "promote" ? count + 1 : Math.max(0, count - 1)), 0);
  const isThere = found.aliases[alias] === version;
  const known = [...new Set(["champion", "challenger", ...Object.keys(found.aliases)])];
  return html`<section class="panel"><h2>${found.strategy}</h2>
    <div class="scroll"><table class="list stack"><thead><tr><th>${t("Version")}</th><th>${t("Alias")}</th><th>sha256</th><th>${t("Made")}</th></tr></thead><tbody>
      ${found.versions.map((made) => html`<tr key=${made.version}><td data-label=${t("Version")}>${made.version}</td><td data-label=${t("Alias")}>${aliasesOf(made.version).map((label) => html`<span class="badge">${label}</span> `)}</td>
        <td data-label="sha256"><code>${made.sha256.slice(0, 12)}</code></td><td data-label=${t("Made")}>${when(made.created_us) || t("in the package")}
          ${made.lineage && html`<details><summary>${t("Lineage")}</summary><pre>${JSON.stringify(made.lineage, null, 1)}</pre></details>`}</td></tr>`)}</tbody></table></div>
    ${found.history.length > 0 && html`<details><summary>${t("History")}</summary><ul>${found.history.map((moved) => html`<li>${when(moved.at_us)} ${moved.alias}: ${moved.kind} → ${moved.version ?? t(TRIALS.includes(moved.alias) ? "None" : "in the package")} (${said(moved.reason)})</li>`)}</ul></details>`}
    <form class="filters" onSubmit=${(event) => { event.preventDefault(); change("/api/models/promote", { strategy: found.strategy, alias, version }, `${found.strategy}:${alias} → ${version}? ${t("No match is played: the history will say so.")}`); }}>
      <label>${t("Alias")}<select value=${alias} onChange=${(event) => setAlias(event.target.value)}>${known.map((label) => html`<option value=${label}>${label}</option>`)}</select></label>
      <label>${t("Version")}<select value=${version} onChange=${(event) => setVersion(event.target.value)}>${found.versions.map((made) => html`<option value=${made.version}>${made.version}</option>`)}</select></label>
      ${alias === "champion" && found.games.length > 1 && html`<label>${t("Game")}<select value=${game} onChange=${(event) => setGame(event.target.value)}>${found.games.map((name) => html`<option value=${name}>${gameName(name, t)}</option>`)}</select></label>`}
      ${alias === "champion" && html`<button type="button" class="act primary" disabled=${isThere || busy || found.job} title=${isThere ? t("This version is the champion.") : undefined} onClick=${gate}>${t("Play for it")}</button>`}
      <button class="act" disabled=${isThere}>${t(alias === "champion" ? "Promote without a match" : "Promote")}</button>
      <button type="button" class="act danger" disabled=${!promotions} onClick=${() => change("/api/models/rollback", { strategy: found.strategy, alias }, `${t("Roll back")} ${found.strategy}:${alias}?`)}>${t("Roll back")}</button></form>
    ${job && html`<${Job} key=${job} id=${job} onDone=${reload} t=${t}>${([moved]) => html`<p class="notice">${moved.strategy}:${moved.alias} → ${moved.version}${t(".")}${t(" ")}${said(moved.reason)}</p>`}<//>`}
    <${Problem} text=${problem} /></section>`;
}

export function Page({ t }) {
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  const load = () => get("/api/models").then(({ strategies }) => setFound(strategies), (error) => setProblem(explained(error)));
  useEffect(() => { load(); }, []);
  return html`<h1>${t("Models")}</h1><p class="dim">${t("Versions of each strategy's model. An alias names the version that plays; running hosts follow within seconds.")}${t(" ")}${t("The champion plays by default. “Play for it” plays a match on duplicate deals against the champion and promotes the version if it is shown to be better.")}</p>
    <${Missing} text=${problem} t=${t} />
    ${found === null ? !problem && html`<p class="dim">…</p>` : found.map((item) => html`
      ${item.problem && html`<p class="notice bad">${item.strategy}${t(": ")}${item.problem}</p>`}
      ${item.versions.length > 0 && html`<${Strategy} key=${item.strategy} found=${item} reload=${load} t=${t} />`}`)}`;
}

// Health of the running host: rates, latency, fallbacks, accounts. Operators drain it from here.
import { html, useEffect, useState } from "../html.js";
import { explained, get, post } from "../api.js";
import { duration } from "../clock.js";
import { capital, said } from "../i18n.js";
import { Problem } from "../problem.js";

const REFRESH_MS = 2000;
const STAGES = { fold: "Take in what the lobby says", decide: "Choose a move", durable: "Save the decision", send: "Send the move" };

function Host({ status, change, t }) {
  const rows = [["Host", status.draining ? t("{text} ({more})", { text: status.host, more: t("draining") }) : status.host], ["Up for", duration(status.uptime_s, t)], ["Tables", status.tables], ["Decisions", status.decisions],
    ["Decisions a second", (status.decisions / Math.max(1, status.uptime_s)).toFixed(1)], ["Seats played", t("{hands} ({aborted} aborted)", status)],
    ["Fallbacks", Object.entries(status.fallbacks).map(([reason, count]) => `${t(`because ${reason}`)}${t(": ")}${count}`).join(t(", ")) || "0"],
    ["Rows that wait for the database", t("{queue} in memory, {spool} on the disk", status.log)], ["Memory", status.rss_bytes === null ? "" : `${Math.round(status.rss_bytes / 2 ** 20)} MiB`]];
  return html`${status.health.map((problem) => html`<${Problem} text=${said(problem)} />`)}
    <section class="panel scroll"><table class="list"><tbody>${rows.map(([label, value]) => html`<tr><th scope="row">${t(label)}</th><td>${value}</td></tr>`)}</tbody></table></section>
    <section class="panel scroll"><h2>${t("Latency")}</h2><p class="count">${t("From the lobby's question to our answer, by stage. Half of all take less than p50, 99 of 100 less than p99.")}</p><table class="list"><thead><tr><th>${t("Stage")}</th><th class="number">p50 ms</th><th class="number">p99 ms</th></tr></thead><tbody>
      ${Object.entries(status.stages).map(([name, stage]) => html`<tr><td>${t(STAGES[name] ?? name)}</td><td class="number">${stage.p50_ms ?? ""}</td><td class="number">${stage.p99_ms ?? ""}</td></tr>`)}</tbody></table></section>
    <section class="panel scroll"><h2>${t("Accounts")}</h2><table class="list"><thead><tr><th>${t("Account")}</th><th>${t("State")}</th><th class="number">${t("Tables")}</th><th><span class="visually-hidden">${t("Change")}</span></th></tr></thead><tbody>
      ${status.accounts.map((account) => html`<${Account} key=${account.account} account=${account} change=${change} t=${t} />`)}</tbody></table></section>
    ${status.strategies.filter((strategy) => strategy.quarantined).map((strategy) => html`<p class="notice bad">${strategy.address}${t(": ")}${t("because quarantined")}
      <button class="act" onClick=${() => change("/api/release", { strategy: strategy.address }, `${strategy.address}${t(": ")}${t("End the quarantine? It gets new tables again.")}`)}>${t("Release")}</button></p>`)}`;
}

function Account({ account, change, t }) {
  const name = `${account.lobby}/${account.account}`;
  const [verb, label, question] = account.paused ? ["resume", "Resume", "Take new tables again?"] : ["pause", "Pause", "Take no new tables? Open ones are finished."];
  return html`<tr><td>${name}</td>
    <td>${account.connected ? t("connected") : account.problem ? said(account.problem) : t("not connected")}${account.paused && html` <span class="badge">${t("paused")}</span>`}</td>
    <td class="number">${account.tables}</td>
    <td class="number"><button class="act" aria-label=${`${t(label)} ${name}`} onClick=${() => change(`/api/accounts/${verb}`, { account: name }, `${name}${t(": ")}${t(question)}`)}>${t(label)}</button></td></tr>`;
}

export function Page({ t }) {
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  const [lost, setLost] = useState("");
  const load = () => get("/api/health").then((now) => { setFound(now); setLost(""); }, (error) => setLost(explained(error)));
  useEffect(() => {
    load();
    const timer = setInterval(load, REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  const change = (path, body, question) => {
    if (confirm(question)) post(path, body).then(() => { setProblem(""); return load(); }, (error) => setProblem(explained(error)));
  };
  const hosts = found?.status ? (found.status.workers ?? [found]).map((worker) => worker.status).filter(Boolean) : [];
  return html`<h1>${t("Health")}</h1><p class="dim">${t("What the running host does now. Pausing an account or draining the host never breaks off a hand.")}</p><${Problem} text=${lost} /><${Problem} text=${problem} />
    ${found === null ? !lost && html`<p class="dim">…</p>` : found.problem ? html`<p class="notice">${[found.problem, found.advice].map((text) => `${capital(said(text))}${t(".")}`).join(t(" "))}</p>` : html`
      ${hosts.map((status) => html`<${Host} key=${status.host} status=${status} change=${change} t=${t} />`)}
      <div class="actions"><button class="act danger" onClick=${() => change("/api/drain", {}, t("Let the host finish its tables and end?"))}>${t("Drain")}</button></div>`}`;
}

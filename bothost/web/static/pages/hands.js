// Logged hands, the newest first.
import { html, useEffect, useState } from "../html.js";
import { get } from "../api.js";

const FIELDS = [["games", "game"], ["strategies", "strategy"], ["players", "player"]];

export function Page({ here, t, go }) {
  const query = Object.fromEntries(new URLSearchParams(here.split("?")[1] ?? ""));
  const [found, setFound] = useState({ hands: null, next: null });
  const [problem, setProblem] = useState("");
  const load = (before) => get("/api/hands", { ...query, before }).then(
    (page) => setFound((old) => ({ hands: [...(before ? old.hands : []), ...page.hands], next: page.next })),
    (error) => setProblem(error.message));
  useEffect(() => { load(); }, [here]);
  const search = (event) => {
    event.preventDefault();
    const chosen = [...new FormData(event.target)].filter(([, value]) => value);
    go(`/hands?${new URLSearchParams(chosen)}`);
  };
  return html`<h1>${t("hands")}</h1>
    <form class="filters" role="search" onSubmit=${search}>
      ${FIELDS.map(([name, label]) => html`<label>${t(label)}<input type="search" name=${name} value=${query[name] ?? ""} /></label>`)}
      <label>${t("result")}<select name="results" value=${query.results ?? ""}><option value="">${t("all")}</option>
        ${["won", "lost", "drawn"].map((result) => html`<option value=${result}>${t(result)}</option>`)}</select></label>
      <label>${t("from")}<input type="date" name="since" value=${query.since ?? ""} /></label>
      <label>${t("until")}<input type="date" name="until" value=${query.until ?? ""} /></label>
      <label class="check"><input type="checkbox" name="fallbacks" value="1" checked=${Boolean(query.fallbacks)} /> ${t("only with fallbacks")}</label>
      <button class="act">${t("search")}</button></form>
    ${problem && html`<p class="notice bad" role="alert">${problem}</p>`}
    ${found.hands?.length === 0 && html`<p class="notice">${t("no hand matches")}</p>`}
    ${found.hands?.length ? html`<div class="panel scroll"><table class="list stack">
      <thead><tr><th>${t("started")}</th><th>${t("game")}</th><th>${t("players")}</th><th>${t("strategy")}</th>
        <th class="number">${t("decisions")}</th><th class="number">${t("fallbacks")}</th><th class="number">${t("score")}</th></tr></thead>
      <tbody>${found.hands.map((hand) => html`<tr key=${hand.name}>
        <td data-label=${t("started")}><a href=${`/hand/${hand.name}`}>${new Date(hand.started_us / 1000).toLocaleString()}</a></td>
        <td data-label=${t("game")}>${t(hand.game)}</td><td data-label=${t("players")}>${hand.players.join(", ")}</td>
        <td data-label=${t("strategy")}>${hand.strategy}${hand.strategy === hand.account ? "" : html` <span class="count">${hand.account}</span>`}</td>
        <td class="number" data-label=${t("decisions")}>${hand.decisions}</td><td class="number" data-label=${t("fallbacks")}>${hand.fallbacks || ""}</td>
        <td class="number" data-label=${t("score")}>${hand.score === null ? t(hand.state) : html`<span class=${hand.score > 0 ? "won" : hand.score < 0 ? "lost" : ""}>${hand.score > 0 ? "+" : ""}${hand.score}</span>`}</td></tr>`)}</tbody></table>
      ${found.next && html`<div class="actions"><button class="act" onClick=${() => load(found.next)}>${t("more")}</button></div>`}</div>` : null}`;
}

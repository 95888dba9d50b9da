// What a strategy considered at one decision: its actions with probability, value and visits as bars.
import { html } from "./html.js";
import { capital } from "./i18n.js";

const SHOWN = 12;

/** A loss or value as people read it. */
export const figure = (number) => (number === null || number === undefined ? "" : number.toFixed(Math.abs(number) >= 10 ? 1 : 2).replace("-", "−"));

/** What may be known of an action → how it is shown. */
const COLUMNS = { probability: (share) => `${(100 * share).toFixed(1)} %`, value: figure, visits: (count) => `${count} ×` };
const has = (action, key) => action[key] !== null && action[key] !== undefined;

/** Length of a bar within 0 and 1: probabilities as they are, values between the worst and the best. */
function lengthOf(actions) {
  if (actions.some((action) => action.probability !== null)) return (action) => action.probability ?? 0;
  const values = actions.map((action) => action.value).filter((value) => value !== null);
  if (!values.length) return null;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return (action) => (action.value === null ? 0 : high > low ? 0.04 + 0.96 * (action.value - low) / (high - low) : 1);
}

/** The first actions, and the chosen one wherever it stands. */
function shownOf(actions) {
  const first = actions.slice(0, SHOWN);
  return first.some((action) => action.chosen) ? first : [...first, ...actions.filter((action) => action.chosen)];
}

export function Bars({ actions, describe, mark = "played", t }) {
  const length = lengthOf(actions);
  if (!length) {
    return html`${mark && html`<p>${t(mark)}${t(": ")}<strong>${actions.filter((action) => action.chosen).map((action) => describe(action.notation, t))}</strong></p>`}
      <p class="dim">${t("This strategy does not rate its actions.")}${t(" ")}${capital(t("legal moves"))}${t(": ")}${actions.length}</p>`;
  }
  const shown = shownOf(actions);
  const left = actions.length - shown.length;
  const columns = Object.entries(COLUMNS).filter(([key]) => shown.some((action) => has(action, key)));
  return html`<p class="count legend">${columns.map(([key]) => t(key)).join(" · ")}</p><ol class="candidates" style=${{ "--figures": columns.length }}>${shown.map((action) => html`<li key=${action.action} class=${action.chosen ? "chosen" : ""}>
      <span>${describe(action.notation, t)}${action.chosen && mark && html`<span class="badge">${t(mark)}</span>`}</span>
      <span class="bar" aria-hidden="true"><span style=${{ width: `${Math.round(100 * Math.max(0, Math.min(1, length(action))))}%` }}></span></span>
      ${columns.map(([key, written]) => html`<span class="figure" title=${t(key)}>${has(action, key) ? written(action[key]) : ""}</span>`)}</li>`)}</ol>
    ${left > 0 && html`<p class="count">+ ${left}</p>`}`;
}

/** What decided at a logged decision. */
export function Logged({ decision, describe, t }) {
  const reason = decision.stats?.reason;
  return html`<section class="panel" aria-label=${t("Candidates")}>
    <h2>${t("Candidates")}</h2>
    <p class="count">${decision.strategy} · ${decision.elapsed_ms.toFixed(1)} ms${decision.value !== null ? ` · ${t("value")} ${figure(decision.value)}` : ""}</p>
    ${decision.fallback && html`<p class="notice bad"><strong>${t("fallback")}${t(": ")}${t(`because ${decision.fallback}`)}</strong></p>`}
    ${reason && html`<p>${reason}</p>`}
    <${Bars} actions=${decision.actions} describe=${describe} t=${t} /></section>`;
}

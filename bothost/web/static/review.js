// "Review with …": another strategy is asked about each decision; what lost value is listed and can be jumped to.
import { html, useEffect, useRef, useState } from "./html.js";
import { explained, stream } from "./api.js";
import { Bars, figure } from "./candidates.js";
import { addresses, preferred, strategyName } from "./names.js";
import { Problem } from "./problem.js";

export const SEVERITIES = ["blunder", "mistake", "inaccuracy"];

/** The state of a review: {judged: Map(position → judgement), done, of, problem, start(address, seat), running}. */
export function useReview(name) {
  const [state, setState] = useState({ judged: new Map(), done: 0, of: null, problem: "", running: false, address: "" });
  const stop = useRef(() => {});
  useEffect(() => () => stop.current(), [name]);
  const start = (address, seat) => {
    stop.current();
    setState({ judged: new Map(), done: 0, of: null, problem: "", running: true, address });
    const query = new URLSearchParams(seat === "" ? { with: address } : { with: address, seat });
    stop.current = stream(`/api/hands/${name}/review?${query}`, (message) => {
      if (message.over) stop.current();
      setState((old) => ({
        ...old,
        ...(message.judged && { judged: new Map(old.judged).set(message.judged.position, message.judged) }),
        done: message.done ?? old.done, of: message.of ?? old.of, problem: "", running: !message.over, waits: message.waits,
      }));
    }, (connected, refused) => setState((old) => ({
      ...old, running: !refused, problem: refused ? explained(refused) : connected ? "" : "The connection is lost. Trying again.",
    })), { stays: true });
  };
  return { ...state, start };
}

const isUnrated = (review) => [...review.judged.values()].every((found) => found.measure === null);

/** The judgements that lost value, in the order of the hand. Of a reviewer that rates nothing: where it would play something else. */
export const mistakes = (review) => [...review.judged.values()]
  .filter(isUnrated(review) ? (found) => found.best !== found.played : (found) => found.severity).sort((a, b) => a.position - b.position);

export function Severity({ severity, t }) {
  return html`<span class=${`badge severity severity-${severity}`}>${{ blunder: "??", mistake: "?", inaccuracy: "?!" }[severity]} ${t(severity)}</span>`;
}

/** `describe`: (notation, number of the position) → words. */
export function ReviewPanel({ hand, review, describe, at, onMove, t }) {
  const [address, setAddress] = useState("");
  const looking = new URLSearchParams(location.search).get("seat") ?? ""; // such as the player's own, after a game
  const [seat, setSeat] = useState(hand.names.some((_, number) => String(number) === looking) ? looking : "");
  const known = addresses(hand.reviewers);
  const rates = hand.decisions.some(({ actions }) => actions.some((action) => action.value !== null || action.probability !== null));
  const usual = rates && known.includes(hand.strategy) ? hand.strategy : preferred(hand.game, known);
  const chosen = address || usual;
  const found = mistakes(review);
  const rated = [...review.judged.values()];
  const unrated = isUnrated(review);
  const submit = (event) => { event.preventDefault(); review.start(chosen, seat); };
  if (!known.length || !hand.positions.length) return null;
  return html`<section class="panel review"><h2>${t("Review")}</h2>
    <form class="filters" onSubmit=${submit}>
      <label>${t("Review with")}<select value=${chosen} onChange=${(event) => setAddress(event.target.value)}>${known.map((name) => html`<option value=${name}>${strategyName(name, t)}</option>`)}</select></label>
      <label>${t("Player")}<select value=${seat} onChange=${(event) => setSeat(event.target.value)}>
        <option value="">${t("Everybody")}</option>${hand.names.map((name, i) => html`<option value=${i}>${name}</option>`)}</select></label>
      <button class="act primary" disabled=${review.running}>${t("Review")}</button></form>
    ${review.of !== null && html`<p class="count" role="status">${review.done} / ${review.of} ${t("decisions")} · ${strategyName(review.address, t)}</p>
      <progress value=${review.done} max=${review.of || 1} aria-label=${t("Review")}></progress>`}
    ${review.waits && html`<p class="count" role="status">${t("This review waits until another one has ended.")}</p>`}
    <${Problem} text=${t(review.problem)} />
    ${rated.length > 0 && unrated && html`<p class="notice">${t("This strategy does not rate its actions.")}${t(" ")}${t("Moves that differ are listed without a loss.")}</p>`}
    ${review.of !== null && !review.running && !review.problem && html`<p>${!unrated && SEVERITIES.map((name) => html`<${Severity} severity=${name} t=${t} /> ${found.filter((judged) => judged.severity === name).length} · `)} ${t("same move")} ${rated.filter((judged) => judged.best === judged.played).length} / ${rated.length}</p>`}
    ${found.length > 0 && html`<ol class="mistakes">${found.map((judged) => html`<li key=${judged.position}>
      <a href=${`?at=${judged.position}`} aria-current=${judged.position === at ? "true" : undefined} onClick=${(event) => { event.preventDefault(); onMove(judged.position); }}>
        ${judged.severity && html`<${Severity} severity=${judged.severity} t=${t} /> `}${hand.names[judged.seat]}${t(": ")}${describe(judged.played, judged.position)} → ${describe(judged.best, judged.position)}
        ${judged.severity && html` <span class="count">−${judged.measure === "probability" ? `${(100 * judged.lost).toFixed(0)} %` : figure(judged.lost)}</span>`}</a></li>`)}</ol>
      <p class="count keys">${t("Keys n and p go to the next and the previous mistake.")}</p>`}
  </section>`;
}

/** What the reviewer says of the position that is shown. */
export function Judgement({ judged, address, describe, t }) {
  return html`<section class="panel judgement" aria-label=${strategyName(address, t)}><h2>${strategyName(address, t)}</h2>
    <p>${judged.best === judged.played ? t("plays the same") : html`${t("would play")} <strong>${describe(judged.best, t)}</strong>`}
      ${judged.severity && html` <${Severity} severity=${judged.severity} t=${t} />`}
      ${judged.lost > 0 && judged.measure === "value" && html` <span class="count">${t("value lost")} ${figure(judged.lost)}</span>`}</p>
    ${judged.reason && html`<p class="dim">${judged.reason}</p>`}
    <${Bars} actions=${judged.actions} describe=${describe} t=${t} /></section>`;
}

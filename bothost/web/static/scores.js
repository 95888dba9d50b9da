// Scores as people read them: with their sign, won ones and lost ones in their colours.
import { html } from "./html.js";

/** 3 → "+3", -6 → "−6", 0 → "0" */
export const signed = (score) => `${score > 0 ? "+" : score < 0 ? "−" : ""}${Math.abs(score)}`;

export function Score({ score }) {
  return html`<span class=${score > 0 ? "won" : score < 0 ? "lost" : ""}>${signed(score)}</span>`;
}

/** What each player of a hand won or lost. */
export function Scores({ names, scores }) {
  return html`<table class="list scores"><tbody>${names.map((name, seat) => html`<tr><th scope="row">${name}</th>
    <td class="number"><${Score} score=${scores[seat]} /></td></tr>`)}</tbody></table>`;
}

/** How a logged hand ended. */
export function Result({ hand, names, t, children }) {
  return html`<section class="panel"><h2>${t("Result")}</h2>${hand.state !== "normal" && html`<p>${t(hand.state)}</p>`}
    ${hand.scores && html`<${Scores} names=${names} scores=${hand.scores} />`}${children}</section>`;
}

// Any other game: its view as a table, its legal actions as buttons. `labels` of a view: a word for each notation.
import { html } from "../html.js";

const text = (value) => (typeof value === "string" && value.includes("\n") ? html`<pre>${value}</pre>` : plain(value));
const plain = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));

export const describe = (notation) => notation;

export function Board({ position, legal, onAct, t }) {
  const { view, views, seat, players } = position;
  const shown = views?.[seat] ?? view;
  return html`<div class="board generic">
    <p>${t("Seat")} ${seat}: <strong>${players[seat]}</strong></p>
    <table class="view"><tbody>
      ${Object.entries(shown).filter(([key]) => key !== "format" && key !== "labels").map(([key, value]) => html`<tr key=${key}><th scope="row">${key}</th><td>${text(value)}</td></tr>`)}
    </tbody></table>
    ${onAct && legal?.length ? html`<div class="actions">${legal.map((action) => html`<button type="button" class="act" onClick=${() => onAct(action)}>${shown.labels?.[action.notation] ?? action.notation}</button>`)}</div>` : null}
  </div>`;
}

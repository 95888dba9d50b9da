// Any other game: its view as a table, its legal actions as buttons. `labels` of a view: a word for each notation.
import { html } from "../html.js";

const FEN = /^[1-8bknpqr/]{15,71} [bw] /i;

/** A position of chess, a line for each rank: capital letters are white's pieces. */
const ranks = (fen) => [...fen.split(" ")[0].split("/").map((rank, i) => `${8 - i}${rank.replace(/\d/g, (n) => ".".repeat(n))}`), " abcdefgh"]
  .map((line) => [...line].join(" ")).join("\n");

function text(value) {
  if (FEN.test(value)) return html`<pre>${ranks(value)}</pre>${value}`;
  return typeof value === "string" && value.includes("\n") ? html`<pre>${value}</pre>` : plain(value);
}
const plain = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));

/** `views`: those of the position in which the action is legal. */
export const describe = (notation, t, views = []) => views.map((view) => view.labels?.[notation]).find(Boolean) ?? notation;

export function Board({ position, legal, onAct, t }) {
  const { view, views, seat, players } = position;
  const shown = views?.[seat] ?? view;
  return html`<div class="board generic">
    <p>${t("Seat")} ${seat}: <strong>${players[seat]}</strong></p>
    <div class="scroll"><table class="view"><tbody>
      ${Object.entries(shown).filter(([key]) => key !== "format" && key !== "labels").map(([key, value]) => html`<tr key=${key}><th scope="row">${key}</th><td>${text(value)}</td></tr>`)}
    </tbody></table></div>
    ${onAct && legal?.length ? html`<div class="actions">${legal.map((action) => html`<button type="button" class="act" onClick=${() => onAct(action)}>${describe(action.notation, t, [shown])}</button>`)}</div>` : null}
  </div>`;
}

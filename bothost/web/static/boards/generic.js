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

const LEFT_OUT = new Set(["format", "labels", "seat", "started", "to_act"]); // for programs, or shown elsewhere
const label = (key, t) => (key === "position" ? t("Position") : t(key));
const words = (notation) => notation.replaceAll("_", " ");

/** `views`: those of the position in which the action is legal. */
export const describe = (notation, t, views = []) => words(views.map((view) => view.labels?.[notation]).find(Boolean) ?? notation);

/** The moves of a view that lists them as [seat, …, notation]; null where it does not. The moves of chance have no seat. */
function movesOf({ history }) {
  const isMove = (entry) => Array.isArray(entry) && Number.isInteger(entry[0]) && typeof entry.at(-1) === "string";
  return Array.isArray(history) && history.every(isMove) ? history.filter(([seat]) => seat >= 0).map((entry) => [entry[0], entry.at(-1)]) : null;
}

/** What the others did since this seat moved last: [seat, notation]. */
export function recent(view) {
  const moves = movesOf(view) ?? [];
  return moves.slice(moves.findLastIndex(([seat]) => seat === view.seat) + 1);
}

export function Board({ position, legal, onAct, t }) {
  const { view, views, seat, players } = position;
  const shown = views?.[seat] ?? view;
  const moves = movesOf(shown);
  const rows = Object.entries(shown).filter(([key]) => !LEFT_OUT.has(key))
    .map(([key, value]) => (key === "history" && moves ? [t("Moves"), moves.map(([, notation]) => words(notation)).join(" · ")] : [label(key, t), text(value)]));
  return html`<div class="board generic">
    ${players.map((player, i) => html`<p class=${[shown.to_act].flat().includes(i) ? "turn" : ""}>${t("Seat")} ${i}${t(": ")}<strong>${player}</strong></p>`)}
    <div class="scroll"><table class="view"><tbody>
      ${rows.map(([key, value]) => html`<tr key=${key}><th scope="row">${key}</th><td>${value}</td></tr>`)}
    </tbody></table></div>
    ${onAct && legal?.length ? html`<div class="actions">${legal.map((action) => html`<button type="button" class="act" onClick=${() => onAct(action)}>${describe(action.notation, t, [shown])}</button>`)}</div>` : null}
  </div>`;
}

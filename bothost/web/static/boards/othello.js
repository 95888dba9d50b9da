// Othello: black is seat 0. A cell is clicked, or reached with the arrow keys.
import { html } from "../html.js";

const FILES = "abcdefgh";

export function Board({ position, legal, onAct, t }) {
  const { view, players } = position;
  const moves = new Map((legal ?? []).map((action) => [action.notation, action]));
  const last = view.moves?.at(-1);
  const count = (disc) => [...view.board].filter((cell) => cell === disc).length;
  const pass = moves.get("pass");
  const onKey = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -8, ArrowDown: 8 }[event.key];
    if (!step) return;
    const cells = [...event.currentTarget.querySelectorAll("[data-cell]")];
    const at = cells.indexOf(document.activeElement);
    cells[Math.max(0, Math.min(63, at + step))]?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<div class="board othello">
    <header class="othello-score">
      ${[0, 1].map((seat) => html`<span class=${view.turn === seat ? "turn" : ""}><span class=${`disc ${seat ? "white" : "black"}`} role="img" aria-label=${t(seat ? "white" : "black")}></span>
        <strong>${players[seat]}</strong> <span class="count">${count(seat ? "O" : "X")}</span></span>`)}
    </header>
    <div class="grid" role="group" aria-label=${t("othello")} onKeyDown=${onKey}>
      ${[...view.board].map((cell, i) => {
        const name = `${FILES[i % 8]}${Math.floor(i / 8) + 1}`;
        const move = moves.get(name);
        const label = `${name} ${cell === "X" ? t("black") : cell === "O" ? t("white") : move ? t("legal") : t("empty")}`;
        return html`<button type="button" data-cell key=${i} class=${`cell${name === last ? " last" : ""}${move ? " legal" : ""}`}
          data-file=${i < 8 ? FILES[i] : undefined} data-rank=${i % 8 ? undefined : Math.floor(i / 8) + 1}
          aria-label=${label} aria-disabled=${!(move && onAct)} tabindex=${i === 0 || move ? 0 : -1} onClick=${() => move && onAct?.(move)}>
          ${cell !== "-" ? html`<span class=${`disc ${cell === "X" ? "black" : "white"}`}></span>` : null}</button>`;
      })}
    </div>
    ${pass && onAct && html`<div class="actions"><button type="button" class="act primary" onClick=${() => onAct(pass)}>${t("Pass turn")}</button></div>`}
  </div>`;
}

/** The last move: [seat, notation]. The colours take turns: who cannot move passes. */
export const recent = ({ moves, start }) => (moves.length ? [[(start.turn + moves.length - 1) % 2, moves.at(-1)]] : []);

export const describe = (notation, t) => (notation === "pass" ? t("pass turn") : notation);

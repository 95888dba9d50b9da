// Playing cards without pictures: a rank is all that Dou Dizhu and the pairing game look at.
import { html } from "../html.js";

/** One card. `card`: {id, rank, colour, label}; a button where `onClick` is given. `marked`: a player has just got it. */
export function Card({ card, back, small, selected, marked, dimmed, onClick }) {
  const classes = ["card", small && "small", back && "back", selected && "selected", marked && "marked", dimmed && "dimmed", card?.colour && `suit-${card.colour}`];
  const name = classes.filter(Boolean).join(" ");
  if (back) return html`<span class=${name} aria-hidden="true"></span>`;
  const face = html`<span class=${`rank${card.rank.length > 1 ? " wide" : ""}`}>${card.rank}</span>${card.symbol ? html`<span class="symbol">${card.symbol}</span>` : null}`;
  if (!onClick) return html`<span class=${name} role="img" aria-label=${card.label} title=${card.label}>${face}</span>`;
  return html`<button type="button" class=${name} aria-pressed=${Boolean(selected)} aria-label=${card.label} disabled=${dimmed} onClick=${onClick}>${face}</button>`;
}

/** Cards side by side, overlapping where there is little room. */
export function Hand({ cards, label, small, selected, enabled, onToggle }) {
  return html`<div class=${`hand${small ? " small" : ""}`} role="group" aria-label=${label}>
    ${cards.map((card, i) => html`<${Card} key=${`${card.id}-${i}`} card=${card} small=${small} selected=${selected?.has(i)}
      dimmed=${onToggle && enabled && !enabled(i)} onClick=${onToggle && (() => onToggle(i))} />`)}
  </div>`;
}

export const counted = (count, t) => `${count} ${t(count === 1 ? "card" : "cards")}`;

/** `count` cards face down. */
export function Backs({ count, t }) {
  return html`<div class="hand small" role="img" aria-label=${counted(count, t)}>
    ${Array.from({ length: count }, (_, i) => html`<${Card} key=${i} back small />`)}
  </div>`;
}

// Dou Dizhu: own hand below, the next player to the right, the previous one to the left.
import { html, useState, useEffect } from "../html.js";
import { Backs, Card, Hand } from "./cards.js";

const RANKS = "3456789TJQKA2BR";
const NAMES = { T: "10", B: "☆", R: "★" };
const WORDS = /^(pass|bid|call|grab)/; // what is no play of cards
const LABELS = { T: "10", B: "black joker", R: "red joker" };

/** "3334" → cards, the highest first. */
export function cardsOf(text) {
  return [...text].map((rank) => ({
    id: rank, rank: NAMES[rank] ?? rank, label: LABELS[rank] ?? rank,
    colour: rank === "R" ? "red" : "black",
  })).sort((a, b) => RANKS.indexOf(b.id) - RANKS.indexOf(a.id));
}

const sorted = (text) => [...text].sort((a, b) => RANKS.indexOf(a) - RANKS.indexOf(b)).join("");

/** The last play of each seat since it last had the turn, or its last bid before the first play: seat → notation. */
function lastPlays(view) {
  const plays = {};
  for (const [seat, play] of (view.history.length ? view.history : view.bids ?? []).slice(-3)) plays[seat] = play;
  return plays;
}

function Play({ text, t }) {
  if (text === undefined) return html`<div class="played"></div>`;
  if (WORDS.test(text)) return html`<div class="played pass">${t(text)}</div>`;
  return html`<div class="played"><${Hand} cards=${cardsOf(text)} small label=${text} /></div>`;
}

function Seat({ seat, place, position, t }) {
  const { view, views, players } = position;
  const known = views?.[seat]?.hand;
  const role = view.landlord === null || view.landlord === undefined ? null : seat === view.landlord ? "landlord" : "peasant";
  return html`<section class=${`seat ${place}${view.turn === seat && !view.winner ? " turn" : ""}`} aria-label=${players[seat]}>
    <header><strong>${players[seat]}</strong>${role && html`<span class=${`badge ${role}`}>${t(role)}</span>`}
      <span class="count">${view.counts[seat]} ${t("cards")}</span></header>
    ${known !== undefined ? html`<${Hand} cards=${cardsOf(known)} small label=${t("hand")} />` : html`<${Backs} count=${view.counts[seat]} label=${`${view.counts[seat]} ${t("cards")}`} />`}
    <${Play} text=${lastPlays(view)[seat]} t=${t} />
  </section>`;
}

/** Choose cards by click or key, then play them. `legal`: [{action, notation}]. */
function Chooser({ hand, legal, onAct, t }) {
  const cards = cardsOf(hand);
  const [chosen, setChosen] = useState(new Set());
  useEffect(() => setChosen(new Set()), [hand, legal]);
  const text = sorted([...chosen].map((i) => cards[i].id).join(""));
  const matches = legal.filter(({ notation }) => notation !== "pass" && sorted(notation) === text);
  const pass = legal.find(({ notation }) => notation === "pass");
  const others = legal.filter(({ notation }) => notation !== "pass" && WORDS.test(notation));
  const toggle = (i) => setChosen((old) => { const next = new Set(old); next.has(i) ? next.delete(i) : next.add(i); return next; });
  useEffect(() => {
    const onKey = (event) => {
      if (event.target.closest?.("input, select, textarea") || event.ctrlKey || event.metaKey) return;
      if (event.key === "Enter" && event.target.closest?.("a, .act")) return; // it is meant
      const rank = { 1: "T", 0: "T" }[event.key] ?? event.key.toUpperCase();
      if (event.key === "Enter" && matches.length) { onAct(matches[0]); event.preventDefault(); }
      else if ((event.key === " " || event.key === "p") && pass && event.target.tagName !== "BUTTON") { onAct(pass); event.preventDefault(); }
      else if (event.key === "Escape") setChosen(new Set());
      else {
        const free = cards.findIndex((card, i) => card.id === rank && !chosen.has(i));
        if (free >= 0) toggle(free);
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  return html`<div class="chooser">
    <${Hand} cards=${cards} selected=${chosen} onToggle=${toggle} label=${t("your hand")} />
    <div class="actions">
      ${others.map((action) => html`<button type="button" class="act" onClick=${() => onAct(action)}>${t(action.notation)}</button>`)}
      ${!others.length && html`
        ${matches.length > 1
          ? matches.map((action) => html`<button type="button" class="act primary" onClick=${() => onAct(action)}>${t("play")} ${action.notation}</button>`)
          : html`<button type="button" class="act primary" disabled=${!matches.length} onClick=${() => onAct(matches[0])}>${t("play")}</button>`}
        ${pass && html`<button type="button" class="act" onClick=${() => onAct(pass)}>${t("pass")}</button>`}`}
    </div>
  </div>`;
}

export function Board({ position, legal, onAct, t }) {
  const { view, views, seat } = position;
  const own = views?.[seat]?.hand ?? view.hand;
  const [next, previous] = [(seat + 1) % 3, (seat + 2) % 3];
  return html`<div class="board doudizhu">
    <div class="middle">
      <span>${t("bottom cards")}</span>
      ${view.bottom ? html`<${Hand} cards=${cardsOf(view.bottom)} small label=${t("bottom cards")} />` : html`<${Backs} count=${3} label="3" />`}
      ${view.stake ? html`<span class="count">${t("stake")} × ${view.stake}${view.bombs ? ` · ${t("bombs")}: ${view.bombs}` : ""}</span>` : null}
    </div>
    <${Seat} seat=${previous} place="left" position=${position} t=${t} />
    <${Seat} seat=${next} place="right" position=${position} t=${t} />
    <section class=${`seat own${view.turn === seat && !view.winner ? " turn" : ""}`} aria-label=${position.players[seat]}>
      <${Play} text=${lastPlays(view)[seat]} t=${t} />
      <header><strong>${position.players[seat]}</strong>
        ${view.landlord !== null && view.landlord !== undefined && html`<span class=${`badge ${view.landlord === seat ? "landlord" : "peasant"}`}>${t(view.landlord === seat ? "landlord" : "peasant")}</span>`}
        <span class="count">${view.counts[seat]} ${t("cards")}</span></header>
      ${onAct && legal?.length ? html`<${Chooser} hand=${own} legal=${legal} onAct=${onAct} t=${t} />`
        : own ? html`<${Hand} cards=${cardsOf(own)} label=${t("hand")} />` : html`<${Backs} count=${view.counts[seat]} label=${t("hand")} />`}
    </section>
  </div>`;
}

/** A move as people write it. */
export const describe = (notation, t) =>
  (WORDS.test(notation) ? t(notation) : [...notation].map((rank) => NAMES[rank] ?? rank).join(" "));

// Dou Dizhu: own hand below, the next player to the right, the previous one to the left.
import { html, useReducer, useEffect, useRef } from "../html.js";
import { capital } from "../i18n.js";
import { Backs, Hand, counted } from "./cards.js";

const RANKS = "3456789TJQKA2BR";
const NAMES = { T: "10", B: "☆", R: "★" };
const WORDS = /^(pass|bid|call|grab)/; // what is no play of cards
const LABELS = { T: "10", B: "black joker", R: "red joker" };

/** The ranks of a play, the highest first. Cards that make several plays stand in "444555666+333" with a "+" before the kickers. */
const sorted = (text) => [...text].filter((rank) => rank !== "+").sort((a, b) => RANKS.indexOf(b) - RANKS.indexOf(a));

/** "3334" → cards, the highest first. */
export const cardsOf = (text, t) => sorted(text).map((rank) => ({
  id: rank, rank: NAMES[rank] ?? rank, label: t(LABELS[rank] ?? rank), colour: rank === "R" ? "red" : "black",
}));

/** The last play of each seat since it last had the turn, or its last bid before the first play: seat → notation. */
function lastPlays(view) {
  const plays = {};
  for (const [seat, play] of (view.history.length ? view.history : view.bids ?? []).slice(-3)) plays[seat] = play;
  return plays;
}

function Play({ text, t }) {
  if (text === undefined) return html`<div class="played"></div>`;
  if (WORDS.test(text)) return html`<div class="played pass">${t(text)}</div>`;
  return html`<div class="played"><${Hand} cards=${cardsOf(text, t)} small label=${describe(text, t)} /></div>`;
}

/** The head of a seat: its player, the role, how many cards are left. */
function Head({ seat, position, t }) {
  const { view, players } = position;
  const role = (view.landlord ?? null) === null ? null : seat === view.landlord ? "landlord" : "peasant";
  return html`<header><strong>${players[seat]}</strong>${role && html`<span class=${`badge ${role}`}>${t(role)}</span>`}
    <span class="count">${counted(view.counts[seat], t)}</span></header>`;
}

function Seat({ seat, place, position, t }) {
  const { view, views, players } = position;
  const known = views?.[seat]?.hand;
  return html`<section class=${`seat ${place}${view.turn === seat ? " turn" : ""}`} aria-label=${players[seat]}>
    <${Head} seat=${seat} position=${position} t=${t} />
    ${known !== undefined ? html`<${Hand} cards=${cardsOf(known, t)} small label=${t("hand")} />` : html`<${Backs} count=${view.counts[seat]} t=${t} />`}
    <${Play} text=${lastPlays(view)[seat]} t=${t} />
  </section>`;
}

/** Choose cards by click or key, then play them. `legal`: [{action, notation}]; while others move it is empty. */
function Chooser({ hand, legal, onAct, t }) {
  const cards = cardsOf(hand, t);
  const state = useRef({ hand, chosen: new Set() }); // no state of a drawing: a key may come before the next one
  const [, draw] = useReducer((n) => n + 1, 0);
  if (state.current.hand !== hand) state.current = { hand, chosen: new Set() };
  const { chosen } = state.current;
  const matching = () => {
    const ranks = sorted([...chosen].map((i) => cards[i].id).join("")).join();
    return legal.filter(({ notation }) => notation !== "pass" && sorted(notation).join() === ranks);
  };
  const matches = matching();
  const pass = legal.find(({ notation }) => notation === "pass");
  const others = legal.filter(({ notation }) => notation !== "pass" && WORDS.test(notation));
  const toggle = (i) => { if (!chosen.delete(i)) chosen.add(i); draw(); };
  useEffect(() => {
    const onKey = (event) => {
      if (event.target.closest?.("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Enter" && event.target.closest?.("a, .act")) return; // it is meant
      if ((event.key === "Enter" || event.key === " ") && event.target.closest?.("summary")) return; // it opens or closes
      const rank = { 1: "T", 0: "T" }[event.key] ?? event.key.toUpperCase();
      const [match] = event.key === "Enter" ? matching() : [];
      if (match) { onAct(match); event.preventDefault(); }
      else if ((event.key === " " || event.key === "p") && pass && event.target.tagName !== "BUTTON") { onAct(pass); event.preventDefault(); }
      else if (event.key === "Escape") { chosen.clear(); draw(); }
      else {
        const free = cards.findIndex((card, i) => card.id === rank && !chosen.has(i));
        if (free >= 0) toggle(free);
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  return html`<div class="chooser">
    <${Hand} cards=${cards} selected=${chosen} onToggle=${toggle} label=${t("Your hand")} />
    <div class="actions">
      ${others.map((action) => html`<button type="button" class="act" onClick=${() => onAct(action)}>${capital(t(action.notation))}</button>`)}
      ${!others.length && html`
        ${matches.length > 1
          ? matches.map((action) => html`<button type="button" class="act primary" onClick=${() => onAct(action)}>${t("Play")} ${describe(action.notation, t)}</button>`)
          : html`<button type="button" class="act primary" disabled=${!matches.length} onClick=${() => onAct(matches[0])}>${t("Play")}</button>`}
        ${pass && html`<button type="button" class="act" onClick=${() => onAct(pass)}>${t("Pass")}</button>`}`}
    </div>
    <p class="count keys">${t("Keys: ranks choose cards (0: 10, B and R: jokers), Enter plays, the space bar passes, Esc clears.")}</p>
  </div>`;
}

export function Board({ position, legal, onAct, t }) {
  const { view, views, seat } = position;
  const own = views?.[seat]?.hand ?? view.hand;
  const [next, previous] = [(seat + 1) % 3, (seat + 2) % 3];
  return html`<div class="board doudizhu">
    <div class="middle">
      <span>${t("Bottom cards")}</span>
      ${view.bottom ? html`<${Hand} cards=${cardsOf(view.bottom, t)} small label=${t("Bottom cards")} />` : html`<${Backs} count=${3} t=${t} />`}
      ${view.stake ? html`<span class="count">${t("Stake")} × ${view.stake}${view.bombs ? ` · ${t("bombs")} ${view.bombs}` : ""}</span>` : null}
    </div>
    <${Seat} seat=${previous} place="left" position=${position} t=${t} />
    <${Seat} seat=${next} place="right" position=${position} t=${t} />
    <section class=${`seat own${view.turn === seat ? " turn" : ""}`} aria-label=${position.players[seat]}>
      <${Play} text=${lastPlays(view)[seat]} t=${t} />
      <${Head} seat=${seat} position=${position} t=${t} />
      ${legal && own && view.phase !== "end" ? html`<${Chooser} hand=${own} legal=${legal} onAct=${onAct} t=${t} />`
        : own ? html`<${Hand} cards=${cardsOf(own, t)} label=${t("hand")} />` : html`<${Backs} count=${view.counts[seat]} t=${t} />`}
    </section>
  </div>`;
}

/** The last moves of all, the newest last: [seat, notation]. */
export const recent = (view) => (view.history.length ? view.history : view.bids ?? []).slice(-2);

/** A move as people write it. */
export const describe = (notation, t) =>
  (WORDS.test(notation) ? t(notation) : [...notation].map((rank) => NAMES[rank] ?? rank).join(" "));

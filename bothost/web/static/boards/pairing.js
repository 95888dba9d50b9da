// Four-colour pairing: the pool in the middle, own hand below, libraries beside the names.
import { html } from "../html.js";
import { capital } from "../i18n.js";
import { Backs, Card } from "./cards.js";

const COLOURS = { g: ["green", "●"], r: ["red", "◆"], w: ["gold", "▲"], b: ["blue", "■"] };

/** Phase → what its player chooses. */
const CHOOSE = {
  A: "Choose a card of your hand to swap with the deck.",
  B: "Choose a card of your hand and any card of the pool.",
  pairing: "Choose a card of your hand and a card of the pool of its colour.",
  discard1: "Choose a card of your hand to discard.",
  discard2: "Choose a card of your hand to discard.",
  final: "Choose a card of your hand to discard.",
};

/** What its player chooses. Where a game has no phase for discards, they happen while pairing: nothing has the colour of a pool card. */
function choice({ phase, selected, pool }, moves) {
  const pairs = selected.length || [...moves.keys()].some((name) => pool.some((card) => card[0] === name[0]));
  return CHOOSE[phase === "pairing" && moves.size && !pairs ? "final" : phase];
}

export function cardOf(name, t) {
  const [colour, symbol] = COLOURS[name[0]] ?? ["black", ""];
  return { id: name, rank: name.slice(1), symbol, colour, label: `${t(colour)} ${name.slice(1)}` };
}

/** The last turn of the other player, by phase: [seat, "enter:pairing g1 g5"]. What is hidden is "?". */
export function recent({ history = [], seat }) {
  const turn = history.slice(0, history.findLastIndex(([mover]) => mover !== seat) + 1);
  const phases = [];
  for (const [mover, notation] of turn.slice(turn.findLastIndex(([mover]) => mover === seat) + 1)) {
    if (notation.includes(":") || !phases.length) phases.push([mover, notation]); else phases.at(-1)[1] += ` ${notation}`;
  }
  return phases;
}

function Cards({ names, moves, selected, marked, onAct, small, label, t }) {
  return html`<div class=${`hand spread${small ? " small" : ""}`} role="group" aria-label=${label}>
    ${names.map((name) => html`<${Card} key=${name} card=${cardOf(name, t)} small=${small} selected=${selected?.includes(name)} marked=${marked?.includes(name)}
      dimmed=${Boolean(onAct && moves.size && !moves.has(name))} onClick=${onAct && moves.has(name) ? () => onAct(moves.get(name)) : undefined} />`)}
  </div>`;
}

/** The cards in a hand; nothing where they are all played. */
function Held({ names, t, ...shown }) {
  if (!names.length) return null;
  return names.includes("?") ? html`<${Backs} count=${names.length} t=${t} />` : html`<${Cards} names=${names} moves=${new Map()} t=${t} ...${shown} />`;
}

function Person({ seat, position, t, place, children }) {
  const { view, players } = position;
  const taken = recent(view).flatMap(([mover, notation]) => (mover === seat ? notation.split(" ") : []));
  return html`<section class=${`seat ${place}${view.to_move === seat ? " turn" : ""}`} aria-label=${players[seat]}>
    <header><strong>${players[seat]}</strong><span class="badge">${view.scores[seat]} ${t(view.scores[seat] === 1 ? "point" : "points")}</span>
      <span class="count" title=${t("How often each skill can still be used")}>${capital(t("phase A"))} ${view.charges[seat][0]} × · ${t("phase B")} ${view.charges[seat][1]} ×</span></header>
    ${children}
    <div class="library"><span class="count">${t("Collected")}</span><${Cards} names=${view.libraries[seat]} marked=${taken} small moves=${new Map()} label=${t("Collected")} t=${t} /></div>
  </section>`;
}

export function describe(notation, t) {
  const [first, ...cards] = notation.split(" ");
  const [kind, phase] = first.split(":");
  const words = kind === "enter" ? t(`phase ${phase}`) : cardOf(first, t).label;
  const shown = cards.filter((name) => name !== "?").map((name) => cardOf(name, t).label).join(t(", "));
  return shown ? `${words}${t(": ")}${shown}` : words;
}

export function Board({ position, legal, onAct, t }) {
  const { view, views, seat } = position;
  const other = 1 - seat;
  const hands = view.hands.map((hand, i) => views?.[i]?.hands?.[i] ?? hand);
  const moves = new Map((legal ?? []).filter(({ notation }) => !notation.includes(":")).map((action) => [action.notation, action]));
  const phases = (legal ?? []).filter(({ notation }) => notation.includes(":"));
  const act = onAct && legal?.length ? onAct : undefined;
  const choose = choice(view, moves);
  return html`<div class="board pairing">
    <${Person} seat=${other} position=${position} t=${t} place="across">
      <${Held} names=${hands[other]} small label=${t("hand")} t=${t} />
    <//>
    <div class="middle"><span>${t("Pool")} · ${t("deck")} ${view.deck.length}</span>
      <${Cards} names=${view.pool} moves=${moves} selected=${view.selected} onAct=${act} label=${t("Pool")} t=${t} /></div>
    <${Person} seat=${seat} position=${position} t=${t} place="own">
      ${act && choose && html`<p>${t(choose)}</p>`}
      ${phases.length && act ? html`<div class="actions">${phases.map((action) => html`<button type="button" class="act primary" onClick=${() => act(action)}>${capital(describe(action.notation, t))}</button>`)}</div>` : null}
      <${Held} names=${hands[seat]} moves=${moves} selected=${view.selected} onAct=${act} label=${t(legal ? "Your hand" : "hand")} t=${t} />
    <//>
  </div>`;
}

// The rules of bothost's own games in words. What has no words here, such as a rule of a plugin's game, is shown as it is.
import { html } from "./html.js";
import { said } from "./i18n.js";

/** Game → preset → its label. */
export const PRESETS = {
  doudizhu: {
    rlcard: "Without bidding", bidding: "With bidding", douzero: "As DouZero: more kickers", mailgyc: "As mailgyc: call and grab",
    botzone: "As Botzone, without bidding", "botzone-bid": "As Botzone, with bidding",
  },
  mahjong: { botzone: "As Botzone: a wall for each seat", "shared-wall": "One wall for all", "open-mahjong": "Flowers, one wall for all", "false-win": "False wins cost points" },
  othello: { standard: "Standard", discs: "Discs count", random8: "8 random moves first" },
  pairing: { "seven-phase": "Seven phases", "four-phase": "Four phases" },
};

/** Game → option → its label. Where only some words are its values: `label`, and value → label as `choices`. */
export const RULES = {
  doudizhu: {
    same_rank_kickers: "Kickers of one move may have the same rank",
    rocket_kickers: "Both jokers may be kickers",
    bomb_kickers: "Four of a kind may be kickers",
    neighbour_kickers: "Kickers may extend the chain",
    shuttles: "Chains of four of a kind",
    bidding: { label: "Bidding", choices: { none: "None", score: "1, 2 or 3 points", grab: "Call and grab" } },
    all_pass: { label: "When nobody bids", choices: { void: "The hand ends with 0", first: "The first seat is landlord" } },
    first: { label: "Who begins", choices: { zero: "The first seat", random: "Drawn by lot" } },
    scoring: { label: "What counts", choices: { win_loss: "Win or loss", points: "Points" } },
    base: "Points of a hand",
    bomb_factor: "Factor of a bomb",
    spring_factor: "Factor of a spring",
    landlord_double: "The landlord wins or loses double",
  },
  mahjong: {
    flowers: "With flowers",
    wall: { label: "Wall", choices: { "per-seat": "A part for each seat", shared: "One for all" } },
    minimum: "Fewest points that win",
    false_win: "A win with too few points can be declared, and costs 30",
    prevalent_wind: { label: "Prevalent wind", choices: { east: "East", south: "South", west: "West", north: "North", dealt: "Drawn by lot" } },
  },
  othello: {
    score: { label: "What counts", choices: { result: "Win or loss", discs: "Difference of discs" } },
    random_plies: "Random moves at the start",
  },
  pairing: {
    hand: "Cards of each hand",
    pool: "Cards in the pool",
    deck: "Cards in the deck",
    rank_bonus: "Points for all four cards of a rank",
    colour_bonus: "Points for a set of one colour",
    colour_set: "Cards of such a set",
    skill_a: "Uses of swap a card",
    skill_b: "Uses of pair any two",
    discards: "Discards in a turn",
    discard_to_hand: "Cards that a discard draws to the hand",
    discard_to_pool: "Cards that a discard draws to the pool",
    refill: "The pool is topped up after each pair",
  },
};

/** Game → how it is played. */
const HOW = {
  doudizhu: [
    "One landlord plays against two peasants. The side of the player who gets rid of all cards first wins.",
    "Beat the last play by a higher one of the same kind and length, or pass. Four of a kind are a bomb: it beats everything but a higher bomb and the rocket, which is both jokers.",
    "From low to high: 3 to 10, J, Q, K, A, 2, black joker, red joker. Suits do not count.",
  ],
  mahjong: [
    "Chinese Official rules: four sets and a pair win if their fans are worth enough points, usually 8.",
    "Draw and discard in turn. Claim a discard for a chow (only from the player before you), a pung, a kong or the win.",
  ],
  othello: ["Place a disc so that it encloses discs of the other colour in a straight line: they turn over. Who cannot do so passes. Most discs win."],
  pairing: [
    "In each turn, collect a pair: a card of your hand and a card of the pool that has its colour. High cards count more; all four of a rank and six of a colour count extra.",
    "Before that you may swap a hand card with the deck, and pair any two cards whatever their colour, once each. If nothing matches, discard.",
  ],
};

/** How a game is played; nothing where that is not known here. */
export function HowToPlay({ game, t }) {
  return HOW[game] && html`<details><summary>${t("How to play")}</summary>${HOW[game].map((sentences) => html`<p>${t(sentences)}</p>`)}</details>`;
}

const options = (labels, chosen, t) => Object.entries(labels).map(([value, label]) => html`<option value=${value} selected=${value === chosen}>${t(label)}</option>`);

/** The choice of a preset; nothing where a game has one alone. */
export function Preset({ game, presets, value, onChange, t }) {
  const labels = Object.fromEntries(Object.keys(presets).map((name) => [name, PRESETS[game]?.[name] ?? name]));
  return Object.keys(labels).length > 1 && html`<label>${t("Rules")}<select name="preset" onChange=${(event) => onChange(event.target.value)}>${options(labels, value, t)}</select></label>`;
}

/** A field for one rule of a game, by the type of its default. */
export function Rule({ game, name, value, t }) {
  const rule = RULES[game]?.[name] ?? name;
  const { label, choices } = rule.choices ? rule : { label: rule };
  const field = `rule.${name}`;
  if (typeof value === "boolean") return html`<label class="check"><input type="checkbox" name=${field} defaultChecked=${value} /> ${t(label)}</label>`;
  if (typeof value === "number") return html`<label>${t(label)}<input type="number" step="any" name=${field} defaultValue=${value} /></label>`;
  if (choices) return html`<label>${t(label)}<select name=${field}>${options(choices, value, t)}</select></label>`;
  if (typeof value === "string") return html`<label>${t(label)}<input type="text" name=${field} defaultValue=${value} /></label>`;
  return null;
}

/** What the server refuses, with a rule by its label: "doudizhu: base: 0 is not within …" → "Points of a hand: 0 is not within …". */
export function refusedRule(message, t) {
  const [, game, name, why] = /^(\w+): (\w+):? (.+)$/.exec(message) ?? [];
  const rule = RULES[game]?.[name];
  return rule ? `${t(rule.label ?? rule)}${t(": ")}${said(why)}` : message;
}

/** Only the rules that differ from the preset's own. */
export function rulesOf(form, defaults) {
  const chosen = {};
  for (const [name, value] of Object.entries(defaults)) {
    const field = form.elements[`rule.${name}`];
    if (!field) continue;
    const now = typeof value === "boolean" ? field.checked : typeof value === "number" ? Number(field.value) : field.value;
    if (now !== value) chosen[name] = now;
  }
  return chosen;
}

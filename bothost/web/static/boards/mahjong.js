// Chinese mahjong: four seats round the table, rivers in the middle, own hand below.
import { html } from "../html.js";
import { capital, currentLanguage } from "../i18n.js";

const WINDS = ["east", "south", "west", "north"];
const ORDER = "WTBFJH";

export function Tile({ tile, small, claimed, onClick, selected, label, t }) {
  const name = `tile${small ? " small" : ""}${claimed ? " claimed" : ""}${selected ? " selected" : ""}${tile ? "" : " back"}`;
  const face = tile ? html`<svg viewBox="0 0 60 80" aria-hidden="true"><use href=${`/static/tiles.svg#${tile}`} /></svg>` : null;
  const spoken = label ?? (tile ? tileName(tile, t) : t("hidden tile"));
  return onClick
    ? html`<button type="button" class=${name} aria-label=${spoken} title=${spoken} onClick=${onClick}>${face}</button>`
    : html`<span class=${name} role="img" aria-label=${spoken} title=${spoken}>${face}</span>`;
}

/** "W3" → "3 character". */
export function tileName(tile, t) {
  const suit = { W: "character", T: "bamboo", B: "dot", H: "flower" }[tile[0]];
  if (suit) return `${tile.slice(1)} ${t(suit)}`;
  if (tile[0] === "F") return t(`${WINDS[tile[1] - 1]} wind`);
  return t({ J1: "red dragon", J2: "green dragon", J3: "white dragon" }[tile] ?? tile);
}

const bySuit = (a, b) => ORDER.indexOf(a[0]) - ORDER.indexOf(b[0]) || a[1] - b[1];

/** The tiles of a meld. A chow is named by its middle tile. */
export function meldTiles({ kind, tile }) {
  if (kind === "chi") return [-1, 0, 1].map((step) => `${tile[0]}${Number(tile[1]) + step}`);
  return Array(kind === "peng" ? 3 : 4).fill(tile ?? null);
}

function Melds({ melds, t }) {
  return html`<div class="melds">${melds.map((meld, i) => html`<span class="meld" key=${i} title=${t(meld.kind)}>
    ${meldTiles(meld).map((tile, j, all) => html`<${Tile} key=${j} small tile=${tile} claimed=${tile === meld.claimed && all.indexOf(tile) === j} t=${t} />`)}</span>`)}</div>`;
}

function River({ tiles, last, t }) {
  return html`<div class="river" role="group" aria-label=${t("Discards")}>${tiles.map((tile, i) => html`<${Tile} key=${i} small tile=${tile} selected=${last && i === tiles.length - 1} t=${t} />`)}</div>`;
}

function Hidden({ count, t }) {
  return html`<div class="tiles" role="img" aria-label=${t("{n} hidden tiles", { n: count })}>${Array.from({ length: count }, (_, i) => html`<span key=${i} class="tile small back"></span>`)}</div>`;
}

/** Whether each seat draws from a wall of its own. A common wall counts as that of the first seat. */
const ownWalls = (view) => view.wall_left.slice(1).some(Boolean);

/** The head of a seat: its wind, its player, what is left of its own wall, its flowers. */
function Head({ seat, position, t }) {
  const { view, players } = position;
  return html`<header><span class="badge">${t(WINDS[seat])}</span><strong>${players[seat]}</strong>
    ${ownWalls(view) && html`<span class="count">${t("Wall")} ${view.wall_left[seat]}</span>`}
    ${view.flowers?.[seat] > 0 && html`<span class="count">${t("Flowers")} ${view.flowers[seat]}</span>`}</header>`;
}

/** Who discarded last. */
const discarder = (view) => recent(view).findLast(([, notation]) => notation.startsWith("play:"))?.[0];

/** Whether a seat has the turn. To a discard, several may answer. */
const moves = (view, seat) => view.actor === seat && ["turn", "discard"].includes(view.phase);

function Opponent({ seat, place, position, t }) {
  const { view, views, players } = position;
  const { hand, melds } = views?.[seat] ?? { melds: view.melds }; // concealed kongs are known to their seat alone
  return html`<section class=${`seat ${place}${moves(view, seat) ? " turn" : ""}`} aria-label=${players[seat]}>
    <${Head} seat=${seat} position=${position} t=${t} />
    ${hand ? html`<div class="tiles">${[...hand].sort(bySuit).map((tile, i) => html`<${Tile} key=${i} small tile=${tile} t=${t} />`)}</div>`
      : html`<${Hidden} count=${view.hand_sizes[seat]} t=${t} />`}
    <${Melds} melds=${melds[seat]} t=${t} />
    <${River} tiles=${view.discards[seat]} last=${seat === discarder(view)} t=${t} />
  </section>`;
}

/** How the hand was won: by whom, with which tile, from whom, and its fans. */
function Win({ win, players, t }) {
  const name = ({ name: english, chinese }) => (currentLanguage() === "zh" ? chinese : english.replaceAll("-", " "));
  const source = win.from === win.seat ? t("self-drawn") : t("from {player}", { player: players[win.from] });
  const sum = win.fans.reduce((points, fan) => points + fan.points * fan.times, 0);
  const parts = win.fans.map((fan) => `${name(fan)} ${fan.points}${fan.times > 1 ? ` × ${fan.times}` : ""}`).join(" + ");
  return html`<section class="win"><p><strong>${players[win.seat]}</strong> ${t(win.valid ? "wins with" : "wins wrongly with")} <${Tile} small tile=${win.tile} t=${t} /> ${source}</p>
    ${parts && html`<p class="count">${t("Fan points")}${t(": ")}${sum} = ${parts}</p>`}</section>`;
}

/** What all saw since this seat discarded last, the newest last: [seat, notation]. */
export const recent = (view) => view.recent ?? [];

/** "peng:B2" → words. A discard is its tile, a chow all of its tiles. */
export function describe(notation, t) {
  const [kind, tile] = notation.split(":");
  if (kind === "pass") return t("pass claim");
  if (kind === "chi") return `${t(kind)} ${tileName(tile, t).replace(tile[1], meldTiles({ kind, tile }).map(([, number]) => number).join("-"))}`;
  return kind === "play" ? tileName(tile, t) : tile ? `${t(kind)} ${tileName(tile, t)}` : t(kind);
}

export function Board({ position, legal, onAct, t }) {
  const { view, views, seat, players } = position;
  const shown = views?.[seat]?.hand ?? view.hand;
  const drawn = views ? null : view.drawn;
  const tiles = [...shown].sort(bySuit);
  if (drawn) tiles.splice(tiles.indexOf(drawn), 1);
  const discards = new Map((legal ?? []).filter(({ notation }) => notation.startsWith("play:")).map((action) => [action.notation.slice(5), action]));
  const others = (legal ?? []).filter(({ notation }) => !notation.startsWith("play:"));
  const act = (tile) => (onAct && discards.has(tile) ? () => onAct(discards.get(tile)) : undefined);
  return html`<div class="board mahjong">
    <div class="middle"><span>${t("Prevalent wind")} <span class="badge">${t(view.prevalent_wind)}</span></span>
      ${!ownWalls(view) && html`<span class="count">${t("Wall")} ${view.wall_left[0]}</span>`}</div>
    <${Opponent} seat=${(seat + 2) % 4} place="across" position=${position} t=${t} />
    <${Opponent} seat=${(seat + 3) % 4} place="left" position=${position} t=${t} />
    <${Opponent} seat=${(seat + 1) % 4} place="right" position=${position} t=${t} />
    <section class=${`seat own${legal?.length || moves(view, seat) ? " turn" : ""}`} aria-label=${players[seat]}>
      <${River} tiles=${view.discards[seat]} last=${seat === discarder(view)} t=${t} />
      <${Head} seat=${seat} position=${position} t=${t} />
      ${others.length && onAct ? html`<div class="actions">${others.map((action) => html`<button type="button" class=${`act${action.notation === "pass" ? "" : " primary"}`}
        onClick=${() => onAct(action)}>${capital(describe(action.notation, t))}</button>`)}</div>` : null}
      <div class="tiles" role="group" aria-label=${t(legal ? "Your hand" : "hand")}>
        ${tiles.map((tile, i) => html`<${Tile} key=${i} tile=${tile} onClick=${act(tile)} t=${t} />`)}
        ${shown.length ? null : html`<${Hidden} count=${view.hand_sizes[seat]} t=${t} />`}
        ${drawn ? html`<span class="drawn"><${Tile} tile=${drawn} onClick=${act(drawn)} t=${t} /></span>` : null}
        <${Melds} melds=${view.melds[seat]} t=${t} />
      </div>
    </section>
    ${view.win ? html`<${Win} win=${view.win} players=${players} t=${t} />` : view.win === null && html`<p class="win">${t("The wall is used up.")}</p>`}
  </div>`;
}

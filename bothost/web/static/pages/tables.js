// The live tables of every host that writes this log.
import { html, useEffect, useState } from "../html.js";
import { explained, stream } from "../api.js";
import { boardOf } from "../boards/index.js";
import { duration, left } from "../clock.js";
import { gameName, playerNames } from "../names.js";
import { Empty } from "../problem.js";

/** A table without a move for so many seconds is shown as silent. */
const SILENT_S = 600;
/** Games whose clocks operators alone see: whom the lobby asks, and when, shows what they hold. */
const SECRET_CLOCKS = ["mahjong"];

/** The modules of these games, by name, as they arrive. */
function useBoards(games) {
  const [boards, setBoards] = useState({});
  useEffect(() => { for (const game of games) boardOf(game).then((module) => setBoards((old) => ({ ...old, [game]: module }))); }, [games.join()]);
  return boards;
}

function LastMove({ table, names, ago, describe, t }) {
  if (ago === null) return null;
  const { seat, notation } = table.last ?? {};
  const player = seat === null || seat === undefined ? "" : `${names[seat] ?? ""}${t(": ")}`;
  return html`${notation ? `${player}${describe(notation, t)} ` : ""}<span class="count nowrap">${t("{time} ago", { time: duration(ago, t) })}</span>`;
}

/** The log has a live hand for each seat of ours. Those of one table are one line of the list, in the order of the seats. */
function byTable(hands) {
  const tables = new Map();
  for (const hand of hands) {
    const key = `${hand.lobby} ${hand.table}`;
    if (tables.has(key)) tables.get(key).push(hand); else tables.set(key, [hand]);
  }
  return [...tables.values()].map((seats) => seats.sort((a, b) => a.seat - b.seat));
}

const newest = (seats) => seats.reduce((a, b) => ((b.moved_us ?? 0) > (a.moved_us ?? 0) ? b : a));

function Row({ seats, now, knows, describe, t }) {
  const { last, moved_us: moved } = newest(seats);
  const table = { ...seats[0], last };
  const ends = seats.map((seat) => seat.ends_us).filter((us) => us !== null);
  const seconds = ends.length ? Math.max(0, Math.round(Math.min(...ends) / 1e6 - now)) : null;
  const ago = moved ? Math.max(0, Math.round(now - moved / 1e6)) : null;
  const names = playerNames(table.players, table.lobby, t);
  const ours = (player) => seats.find((seat) => seat.account === player);
  return html`<tr>
    <td data-label=${t("Game")}><a href=${`/table/${table.name}`} aria-label=${`${gameName(table.game, t)}${t(": ")}${names.join(t(", "))}`}>${gameName(table.game, t)}</a></td>
    <td data-label=${t("Players")}>${table.players.map((player, i) => html`${i ? t(", ") : ""}${ours(player) ? html`<a href=${`/table/${ours(player).name}`}>${names[i]}</a>` : names[i]}`)}</td>
    <td data-label=${t("Strategy")}>${[...new Set(seats.map((seat) => seat.strategy))].join(t(", "))}</td>
    <td data-label=${t("Clock")}>${seconds === null ? html`<span class="count">${knows ? t("waits") : ""}</span>` : html`<span class=${`badge${seconds < 5 ? " bad" : ""}`}>${left(seconds, t)}</span>`}
      ${ago > SILENT_S && html` <span class="badge bad">${t("silent")}</span>`}</td>
    <td data-label=${t("Last move")}><${LastMove} table=${table} names=${names} ago=${ago} describe=${describe} t=${t} /></td></tr>`;
}

export function Page({ session, t }) {
  const [list, setList] = useState(null);
  const [connected, setConnected] = useState(true);
  const [refusal, setRefusal] = useState("");
  const [, tick] = useState(0);
  useEffect(() => { const timer = setInterval(() => tick((n) => n + 1), 1000); return () => clearInterval(timer); }, []);
  useEffect(() => stream("/api/tables", (message) => setList({ ...message, since: performance.now() }), (open, refused) => {
    setConnected(open);
    setRefusal(refused ? explained(refused) : "");
  }), []);
  const boards = useBoards([...new Set(list?.tables.map((table) => table.game))].sort());
  const tables = byTable(list?.tables ?? []);
  const now = list && list.at + (performance.now() - list.since) / 1000; // the server's clock
  return html`<h1>${t("Live tables")} ${list?.tables.length ? html`<span class="count">${tables.length}</span>` : null}</h1>
    <p class="dim">${t("Every table at which a bot of this host plays now. Choose one to watch it, or a player to see the table from that seat.")}</p>
    ${!connected && html`<p class="notice bad" role="status">${refusal || t("The connection is lost. Trying again.")}</p>`}
    ${list === null ? !refusal && html`<p class="dim">…</p>` : list.tables.length === 0
      ? html`<${Empty} text=${t("No table is live.")} session=${session} t=${t} />`
      : html`<div class="panel scroll"><table class="list stack">
        <thead><tr><th>${t("Game")}</th><th>${t("Players")}</th><th>${t("Strategy")}</th><th>${t("Clock")}</th><th>${t("Last move")}</th></tr></thead>
        <tbody>${tables.map((seats) => html`<${Row} key=${seats[0].name} seats=${seats} now=${now} knows=${session.viewer === "operator" || !SECRET_CLOCKS.includes(seats[0].game)} describe=${boards[seats[0].game]?.describe ?? ((notation) => notation)} t=${t} />`)}</tbody></table></div>`}`;
}

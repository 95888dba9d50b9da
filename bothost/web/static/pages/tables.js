// The live tables of every host that writes this log.
import { html, useEffect, useState } from "../html.js";
import { stream } from "../api.js";
import { boardOf } from "../boards/index.js";

/** The modules of these games, by name, as they arrive. */
function useBoards(games) {
  const [boards, setBoards] = useState({});
  useEffect(() => { for (const game of games) boardOf(game).then((module) => setBoards((old) => ({ ...old, [game]: module }))); }, [games.join()]);
  return boards;
}

function LastMove({ table, ago, describe, t }) {
  if (ago === null) return null;
  const { seat, notation } = table.last ?? {};
  const player = seat === null || seat === undefined ? "" : `${table.players[seat] ?? ""}: `;
  return html`${notation ? `${player}${describe(notation, t)} ` : ""}<span class="count">${ago} s</span>`;
}

function Row({ table, now, describe, t }) {
  const left = table.ends_us === null ? null : Math.max(0, Math.round(table.ends_us / 1e6 - now));
  const ago = table.moved_us ? Math.max(0, Math.round(now - table.moved_us / 1e6)) : null;
  return html`<tr>
    <td data-label=${t("game")}><a href=${`/table/${table.name}`}>${t(table.game)}</a></td>
    <td data-label=${t("players")}>${table.players.join(", ")}</td>
    <td data-label=${t("strategy")}>${table.strategy}${table.strategy === table.account ? "" : html` <span class="count">${table.account}</span>`}</td>
    <td data-label=${t("clock")}>${left === null ? html`<span class="count">${t("waits")}</span>` : html`<span class=${`badge${left < 5 ? " bad" : ""}`}>${left} s</span>`}
      ${table.silent && html` <span class="badge bad">${t("silent")}</span>`}</td>
    <td data-label=${t("last move")}><${LastMove} table=${table} ago=${ago} describe=${describe} t=${t} /></td></tr>`;
}

export function Page({ t }) {
  const [list, setList] = useState(null);
  const [connected, setConnected] = useState(true);
  const [, tick] = useState(0);
  useEffect(() => { const timer = setInterval(() => tick((n) => n + 1), 1000); return () => clearInterval(timer); }, []);
  useEffect(() => stream("/api/tables", (message) => setList({ ...message, since: performance.now() }), setConnected), []);
  const boards = useBoards([...new Set(list?.tables.map((table) => table.game))].sort());
  const now = list && list.at + (performance.now() - list.since) / 1000; // the server's clock
  return html`<h1>${t("live tables")} ${list?.tables.length ? html`<span class="count">${list.tables.length}</span>` : null}</h1>
    <p class="dim">${t("Every table at which a bot of this host plays now. Choose one to watch it.")}</p>
    ${!connected && html`<p class="notice bad" role="status">${t("The connection is lost. Trying again.")}</p>`}
    ${list === null ? html`<p class="dim">…</p>` : list.tables.length === 0
      ? html`<p class="notice">${t("no table is live")}. <code>bothost demo</code> ${t("starts some.")}</p>`
      : html`<div class="panel scroll"><table class="list stack">
        <thead><tr><th>${t("game")}</th><th>${t("players")}</th><th>${t("strategy")}</th><th>${t("clock")}</th><th>${t("last move")}</th></tr></thead>
        <tbody>${list.tables.map((table) => html`<${Row} key=${table.name} table=${table} now=${now} describe=${boards[table.game]?.describe ?? ((notation) => notation)} t=${t} />`)}</tbody></table></div>`}`;
}

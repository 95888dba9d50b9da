// One live table, as this viewer may see it.
import { html, useEffect, useState } from "../html.js";
import { explained, stream } from "../api.js";
import { boardOf } from "../boards/index.js";
import { Said } from "../chat.js";
import { Clock } from "../clock.js";
import { gameName, playerNames } from "../names.js";

export function Page({ here, onTitle, t }) {
  const name = here.split("?")[0].slice("/table/".length);
  const [table, setTable] = useState(null);
  const [board, setBoard] = useState(null);
  const [connected, setConnected] = useState(true);
  const [gone, setGone] = useState("");
  useEffect(() => {
    const stop = stream(`/api/tables/${name}`, (message) => {
      if (message.over) stop();
      setTable((old) => (message.over ? { ...old, over: true } : message));
    }, (open, refused) => {
      setConnected(open);
      if (refused) setGone(explained(refused));
    });
    return stop;
  }, [name]);
  useEffect(() => { if (table?.game) boardOf(table.game).then((module) => setBoard(() => module)); }, [table?.game]);
  const names = playerNames(table?.names ?? [], table?.lobby, t);
  const title = table?.game && `${gameName(table.game, t)}${t(": ")}${names.join(t(", "))}`;
  useEffect(() => { if (title) onTitle(title); }, [title]);
  if (gone) return html`<h1>${t("Table")}</h1><p class="notice bad" role="alert">${gone}</p><p><a href="/">${t("Go to the tables.")}</a></p>`;
  if (!table) return html`<p class="dim">…</p>`;
  const over = html`<p class="notice" role="status">${t("The hand is over.")}${t(" ")}<a href=${`/hand/${name}`}>${t("Replay it.")}</a></p>`;
  if (!table.game) return html`<h1>${t("Live")}</h1>${over}`;
  const Board = board?.Board;
  return html`<h1>${gameName(table.game, t)} <span class="count about"><bdi>${t("lobby")} ${table.lobby}</bdi> · <bdi>${t("table")} ${table.table}</bdi></span> ${table.over ? null : html`<${Clock} leftMs=${table.left_ms} t=${t} />`}</h1>
    ${table.over && over}
    ${!connected && !table.over && html`<p class="notice bad" role="status">${t("The connection is lost. Trying again.")}</p>`}
    ${table.view && table.moved_us && !table.over && html`<p class="dim">${t("Seen from the seat of {player}. The board is brought up to date when this seat moves.", { player: names[table.seat] ?? table.account })}</p>`}
    ${!table.moved_us && !table.over ? html`<p class="notice">${t("No move of this hand is in the log yet.")}</p>` : table.view && Board
      ? html`<${Board} position=${{ ...table, players: names }} t=${t} />`
      : table.over ? null : html`<p class="notice">${t("What is on this table is not public before the hand ends.")}</p>`}
    <${Said} lines=${table.chat} t=${t} />`;
}

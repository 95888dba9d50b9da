// One live table, as this viewer may see it.
import { html, useEffect, useState } from "../html.js";
import { explained, get, stream } from "../api.js";
import { useTable } from "../boards/index.js";
import { Said } from "../chat.js";
import { Clock } from "../clock.js";
import { gameName } from "../names.js";
import { Gone } from "../problem.js";
import { Result } from "../scores.js";

export function Page({ here, onTitle, t }) {
  const name = here.split("?")[0].slice("/table/".length);
  const [table, setTable] = useState(null);
  const [ended, setEnded] = useState(null); // the hand in the log, once it is over
  const [connected, setConnected] = useState(true);
  const [gone, setGone] = useState("");
  useEffect(() => {
    const stop = stream(`/api/tables/${name}`, (message) => {
      setTable((old) => (message.over ? { ...old, over: true } : message));
      if (!message.over) return;
      stop();
      get(`/api/hands/${name}`).then(setEnded, () => {}); // without it, the last position that was seen stays
    }, (open, refused) => {
      setConnected(open);
      if (refused) setGone(explained(refused));
    });
    return stop;
  }, [name]);
  const shown = ended ?? table;
  const { board, names } = useTable(shown, onTitle, t);
  if (gone) return html`<${Gone} title=${t("Table")} text=${gone} href="/" link=${t("Go to the tables.")} />`;
  if (!table) return html`<p class="dim">…</p>`;
  const over = table.over && html`<p class="notice" role="status">${t("The hand is over.")}${t(" ")}<a href=${`/hand/${name}`}>${t("Replay it.")}</a> · <a href="/">${t("Go to the tables.")}</a></p>`;
  if (!shown.game) return html`<h1>${t("Table")}</h1>${over}`;
  const Board = board?.Board;
  const last = ended?.positions.at(-1);
  const position = last ? { seat: ended.seat, view: last.views[ended.seat], views: last.views } : table.moved_us ? table : {};
  return html`<h1>${gameName(shown.game, t)} <span class="count about"><bdi>${t("lobby")} ${shown.lobby}</bdi> · <bdi>${t("table")} ${shown.table}</bdi></span> ${table.over ? null : html`<${Clock} leftMs=${table.left_ms} t=${t} />`}</h1>
    ${over}
    ${!connected && !table.over && html`<p class="notice bad" role="status">${t("The connection is lost. Trying again.")}</p>`}
    ${table.view && table.moved_us && !table.over && html`<p class="dim">${t("Seen from the seat of {player}. The board is brought up to date when this seat moves.", { player: names[table.seat] ?? table.account })}</p>`}
    ${!table.moved_us && !table.over ? html`<p class="notice">${t("No move of this hand is in the log yet.")}</p>` : position.view && Board
      ? html`<${Board} position=${{ ...position, players: names }} t=${t} />`
      : table.over ? null : html`<p class="notice">${t("What is on this table is not public before the hand ends.")}</p>`}
    ${ended && html`<${Result} hand=${ended} names=${names} t=${t} />`}
    <${Said} lines=${shown.chat ?? []} t=${t} />`;
}

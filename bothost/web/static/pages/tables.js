// The live tables of every host that writes this log.
import { html, useEffect, useState } from "../html.js";
import { stream } from "../api.js";

export function Page({ t }) {
  const [tables, setTables] = useState(null);
  const [connected, setConnected] = useState(true);
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => { const timer = setInterval(() => setNow(Date.now() / 1000), 1000); return () => clearInterval(timer); }, []);
  useEffect(() => stream("/api/tables", (message) => setTables(message.tables), setConnected), []);
  return html`<h1>${t("live tables")}</h1>
    <p class="dim">${t("Every table at which a bot of this host plays now. Choose one to watch it.")}</p>
    ${!connected && html`<p class="notice bad" role="status">${t("The connection is lost. Trying again.")}</p>`}
    ${tables === null ? html`<p class="dim">…</p>` : tables.length === 0
      ? html`<p class="notice">${t("no table is live")}. <code>bothost demo</code> ${t("starts some.")}</p>`
      : html`<div class="panel scroll"><table class="list">
        <thead><tr><th>${t("game")}</th><th>${t("players")}</th><th>${t("strategy")}</th><th>${t("started")}</th><th class="number">${t("last move")}</th></tr></thead>
        <tbody>${tables.map((table) => html`<tr key=${table.name}>
          <td><a href=${`/table/${table.name}`}>${table.game}</a></td>
          <td>${table.players.join(", ")}</td>
          <td>${table.account}: ${table.strategy}</td>
          <td>${new Date(table.started_us / 1000).toLocaleTimeString()} ${table.silent && html`<span class="badge bad">${t("silent")}</span>`}</td>
          <td class="number">${table.moved_us ? `${Math.max(0, Math.round(now - table.moved_us / 1e6))} s` : ""}</td></tr>`)}</tbody></table></div>`}`;
}

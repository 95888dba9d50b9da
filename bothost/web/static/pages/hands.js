// Logged hands, the newest first.
import { html, useEffect, useRef, useState } from "../html.js";
import { explained, get } from "../api.js";
import { PREFERRED, gameName, playerNames } from "../names.js";
import { Empty, Problem } from "../problem.js";
import { Score } from "../scores.js";

const PAGE = 50;
const FIELDS = [["games", "Game"], ["strategies", "Strategy"], ["players", "Player"]];

/** A game's own name for the one that the page shows: "Dou Dizhu" → "doudizhu". */
const gameOf = (text, games, t) => games.find((game) => [game, gameName(game, t)].some((name) => name.toLowerCase() === text.trim().toLowerCase())) ?? text;

/** For "back" from a hand: the browser's history keeps how long the list was, and where its link stood in the window. */
const opened = () => history.state?.opened;
const open = (name, link, shown) => history.replaceState({ opened: { name, shown, top: link.getBoundingClientRect().top } }, "");

function useReturn(searching) {
  useEffect(() => {
    const link = !searching && opened() && document.querySelector(`a[href="/hand/${opened().name}"]`);
    if (!link) return;
    scrollBy(0, link.getBoundingClientRect().top - opened().top);
    link.focus({ preventScroll: true });
    history.replaceState(null, "");
  }, [searching]);
}

/** The beginning of a day where the reader is, `later` days on, as a time in UTC. */
function dayAt(text, later = 0) {
  const day = text && new Date(`${text}T00:00`);
  if (!day || Number.isNaN(day.getTime())) return text;
  day.setDate(day.getDate() + later);
  return day.toISOString();
}

/** The state of a search: {hands, next, searched_us, full, searching, problem, again(), more(), stop()}.
 *
 * An answer that took long has not searched the whole log: the page asks for the rest until it has a page of hands.
 * A list that is returned to gets as long as it was.
 */
function useSearch(query, here) {
  const [found, setFound] = useState({ hands: [], next: null, searched_us: null, full: false, problem: "" });
  const [searching, setSearching] = useState(true);
  const run = useRef(0);
  const stop = () => { run.current += 1; setSearching(false); };
  const search = async (before, { shown = PAGE, name = "" } = {}) => {
    const mine = ++run.current;
    setSearching(true);
    let wanted = shown;
    for (let next = before; ;) {
      try {
        const page = await get("/api/hands", { ...query, since: dayAt(query.since), until: dayAt(query.until, 1), before: next });
        if (run.current !== mine) return;
        const first = next === undefined;
        setFound((old) => ({ ...page, problem: "", hands: [...(first ? [] : old.hands), ...page.hands] }));
        wanted -= page.hands.length;
        if (name && page.hands.at(-1)?.name > name) wanted = Math.max(wanted, 1); // the opened hand is older: new ones have come
        next = page.next;
      } catch (error) {
        if (run.current !== mine) return;
        setFound((old) => ({ ...old, problem: explained(error) }));
        next = null;
      }
      if (next === null || wanted <= 0) { setSearching(false); return; }
    }
  };
  const begin = (list) => { setFound((old) => ({ ...old, searched_us: null })); search(undefined, list); };
  useEffect(() => { begin(opened()); return () => { run.current += 1; }; }, [here]);
  return { ...found, searching, again: () => begin(), more: () => search(found.next), stop };
}

/** How far the log is searched, while that is not to its beginning. */
function Searched({ found, t }) {
  const day = found.searched_us && new Date(found.searched_us / 1000).toLocaleDateString();
  if (!day || (found.full && !found.searching)) return null;
  return html`<p class="notice" role="status">${t(found.searching ? "Searching. Back to" : "Stopped. Searched back to")} ${day}. ${t("Found")}: ${found.hands.length}</p>`;
}

function Row({ hand, onOpen, t }) {
  const names = playerNames(hand.players, hand.lobby, t);
  const account = names[hand.players.indexOf(hand.account)] ?? hand.account;
  return html`<tr>
    <td data-label=${t("Started")}><a href=${`/hand/${hand.name}`} onClick=${(event) => onOpen(hand.name, event.currentTarget)}>${new Date(hand.started_us / 1000).toLocaleString()}</a></td>
    <td class="nowrap" data-label=${t("Game")}>${gameName(hand.game, t)}</td><td data-label=${t("Players")}>${names.map((name, seat) => html`${seat ? t(", ") : ""}${name}${hand.scores?.[seat] === undefined ? "" : html` <${Score} score=${hand.scores[seat]} />`}`)}</td>
    <td data-label=${t("Strategy")}>${account !== hand.account || account === hand.strategy ? account : html`${hand.strategy} <span class="count">${account}</span>`}</td>
    <td class="number" data-label=${t("Decisions")}>${hand.decisions}</td><td class="number" data-label=${t("Fallbacks")}>${hand.fallbacks || ""}</td>
    <td class="number" data-label=${t("Score")}>${hand.score === null ? t(hand.state) : html`<${Score} score=${hand.score} />`}</td></tr>`;
}

export function Page({ here, session, t, go }) {
  const query = Object.fromEntries(new URLSearchParams(here.split("?")[1] ?? ""));
  const found = useSearch(query, here);
  useReturn(found.searching);
  const games = [...Object.keys(PREFERRED), ...(query.games ? [query.games] : []), ...found.hands.map((hand) => hand.game)];
  const search = (event) => {
    event.preventDefault();
    const chosen = [...new FormData(event.target)].filter(([, value]) => value).map(([name, value]) => [name, name === "games" ? gameOf(value, games, t) : value.trim()]);
    const wanted = `/hands?${new URLSearchParams(chosen)}`.replace(/\?$/, "");
    if (wanted === here) found.again(); else go(wanted);
  };
  const known = {
    games: games.map((game) => gameName(game, t)),
    strategies: found.hands.map((hand) => hand.strategy),
    players: found.hands.flatMap((hand) => playerNames(hand.players, hand.lobby, t).filter((name) => hand.players.includes(name))), // other bots are found by strategy
  };
  return html`<h1>${t("Hands")}</h1>
    <p class="dim">${t("Every hand that ended, the newest first. Choose one to replay and review it. Two bots of this host at one table are two lines.")}</p>
    <form key=${here} class="filters" role="search" onSubmit=${search}>
      ${FIELDS.map(([name, label]) => html`<label>${t(label)}<input type="search" name=${name} list=${`known-${name}`} defaultValue=${name === "games" ? gameName(query[name] ?? "", t) : query[name] ?? ""} /></label>
        <datalist id=${`known-${name}`}>${[...new Set(known[name])].filter(Boolean).sort().map((word) => html`<option value=${word} />`)}</datalist>`)}
      <label>${t("Result")}<select name="results"><option value="">${t("All")}</option>
        ${[["won", "Won"], ["lost", "Lost"], ["drawn", "Drawn"]].map(([result, label]) => html`<option value=${result} selected=${query.results === result}>${t(label)}</option>`)}</select></label>
      <label>${t("From")}<input type="date" name="since" defaultValue=${query.since ?? ""} /></label>
      <label>${t("Until")}<input type="date" name="until" defaultValue=${query.until ?? ""} /></label>
      <label class="check"><input type="checkbox" name="fallbacks" value="1" defaultChecked=${Boolean(query.fallbacks)} /> ${t("Only with fallbacks")}</label>
      <button class="act">${t("Search")}</button></form>
    <${Problem} text=${found.problem} />
    ${!found.searching && !found.problem && !found.next && !found.hands.length && (Object.keys(query).length ? html`<p class="notice">${t("No hand matches.")}</p>`
      : html`<${Empty} text=${t("No hand is logged yet.")} session=${session} t=${t} />`)}
    ${found.hands.length ? html`<div class="panel scroll"><table class="list stack">
      <thead><tr><th>${t("Started")}</th><th>${t("Game")}</th><th>${t("Players")}</th><th>${t("Strategy")}</th>
        <th class="number">${t("Decisions")}</th><th class="number">${t("Fallbacks")}</th><th class="number">${t("Score")}</th></tr></thead>
      <tbody>${found.hands.map((hand) => html`<${Row} key=${hand.name} hand=${hand} onOpen=${(name, link) => open(name, link, found.hands.length)} t=${t} />`)}</tbody></table></div>` : null}
    <${Searched} found=${found} t=${t} />
    <div class="actions">${found.searching ? found.searched_us && html`<button class="act" onClick=${found.stop}>${t("Stop")}</button>`
      : found.next && html`<button class="act" onClick=${found.more}>${t(found.full ? "More" : "Search further")}</button>`}</div>`;
}

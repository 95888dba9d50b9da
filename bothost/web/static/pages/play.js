// Play against the bots: choose a game and opponents, then play it on the board.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { explained, get, post, stream } from "../api.js";
import { said } from "../i18n.js";
import { useTable } from "../boards/index.js";
import { Bars } from "../candidates.js";
import { Said } from "../chat.js";
import { Clock } from "../clock.js";
import { PREFERRED, addresses, gameName, preferred, strategyName } from "../names.js";
import { Gone, Missing, Problem } from "../problem.js";
import { HowToPlay, Preset, Rule, refusedRule, rulesOf } from "../rules.js";
import { Scores } from "../scores.js";
import { keep, kept } from "../storage.js";

/** How often a hidden page asks whether it is our turn. Browsers let pages that are hidden for long ask once a minute. */
const LOOK_MS = 5000;
const CLOCKS = [[0, "No clock"], [20_000, "20 s a move"], [60_000, "1 minute a move"], [300_000, "5 minutes a move"]];

/** What was chosen for the last game: {game, preset, opponents, grant_ms}. */
function lastChoice() {
  try { return JSON.parse(kept("table")) ?? {}; } catch { return {}; }
}

function Setup({ t, go }) {
  const [offer, setOffer] = useState(null);
  const query = new URLSearchParams(location.search);
  const last = useMemo(lastChoice, []);
  const [chosen, setChosen] = useState(query.get("game") ?? last.game ?? "doudizhu");
  const [rules, setRules] = useState(last.game === chosen ? last.preset ?? "" : ""); // the chosen preset
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => { get("/api/play").then(setOffer, (error) => setProblem(explained(error))); }, []);
  if (!offer) return problem ? html`<h1>${t("Play a game")}</h1><${Missing} text=${problem} t=${t} />` : html`<p class="dim">…</p>`;
  const game = offer.games.find((item) => item.game === chosen) ?? offer.games[0];
  const [usual] = Object.keys(game.presets);
  const preset = rules in game.presets ? rules : usual;
  const { preset: _, ...options } = game.presets[preset];
  const known = addresses(game.strategies);
  const opponent = (seat) => [seat ? null : query.get("opponent"), last.game === game.game && last.opponents?.[seat]].find((address) => known.includes(address)) ?? preferred(game.game, known);
  const start = (event) => {
    event.preventDefault();
    const form = event.target;
    const value = (name) => form.elements[name].value;
    const wanted = { game: game.game, grant_ms: Number(value("clock")), opponents: Array.from({ length: game.seats - 1 }, (_, i) => value(`opponent.${i}`)) };
    keep("player", value("name"));
    keep("table", JSON.stringify({ ...wanted, preset }));
    setBusy(true);
    setProblem("");
    post("/api/play", { ...wanted, name: value("name"), rules: { ...(preset !== usual && { preset }), ...rulesOf(form, options) }, consents: form.elements.consents.checked })
      .then(({ id }) => go(`/play/${id}`), ({ message, advice }) => { setBusy(false); setProblem(explained({ message: refusedRule(message, t), advice })); });
  };
  return html`<h1>${t("Play a game")}</h1>
    <p class="dim">${t("You take one seat, bots take the others. Afterwards the hand can be replayed and reviewed.")}${t(" ")}${t("A strategy without a level plays its best; level 1 is the easiest.")}</p>
    ${Object.entries(offer.running).map(([id, { game: name, started_us: us }]) => html`<p class="notice"><a href=${`/play/${id}`}>${t("Go on with your game of {game}, started at {time}.", { game: gameName(name, t), time: new Date(us / 1000).toLocaleTimeString() })}</a></p>`)}
    <form class="panel setup" onSubmit=${start}>
      <label>${t("Your name")}<input type="text" name="name" required maxlength="32" pattern="[\\p{L}\\p{N}][\\p{L}\\p{M}\\p{N}_.\\-]*" title=${t("letters and digits of any language, and _ . -")} defaultValue=${offer.name ?? kept("player")} autocomplete="nickname" /></label>
      <label>${t("Game")}<select name="game" value=${game.game} onChange=${(event) => { setChosen(event.target.value); setRules(""); }}>
        ${offer.games.map((item) => html`<option value=${item.game}>${gameName(item.game, t)}</option>`)}</select></label>
      ${Array.from({ length: game.seats - 1 }, (_, i) => html`<label key=${`${game.game}-${i}`}>${t("Opponent")} ${i + 1}<select name=${`opponent.${i}`}>
        ${known.map((address) => html`<option value=${address} selected=${address === opponent(i)}>${strategyName(address, t)}</option>`)}</select></label>`)}
      <label>${t("Clock")}<select name="clock">${CLOCKS.map(([ms, label]) => html`<option value=${ms} selected=${ms === (last.grant_ms ?? 60_000)}>${t(label)}</option>`)}</select></label>
      <${Preset} key=${`${game.game} preset`} game=${game.game} presets=${game.presets} value=${preset} onChange=${setRules} t=${t} />
      <${HowToPlay} game=${game.game} t=${t} />
      <details key=${`${game.game} ${preset}`}><summary>${t("Individual rules")}</summary><div class="rules">${Object.entries(options).map(([name, value]) => html`<${Rule} key=${name} game=${game.game} name=${name} value=${value} t=${t} />`)}</div></details>
      <label class="check"><input type="checkbox" name="consents" /> ${t("A strategy may be trained to imitate me from my games. I can take this back.")}</label>
      <div class="actions"><button class="act primary" disabled=${busy}>${t(busy ? "One moment" : "Start")}</button></div>
      <${Problem} text=${problem} />
    </form>
    ${offer.name && html`<p><a href=${`/hands?${new URLSearchParams({ players: offer.name })}`}>${t("Your hands")}</a> · <a href="/clone">${t("Clone me")}</a>${t(": ")}${t("train a bot that plays as you do, from your own hands.")}</p>`}`;
}

function Hint({ id, game, ask, describe, t }) {
  const [offer, setOffer] = useState([PREFERRED[game]].filter(Boolean)); // until the server has answered
  const [chosen, setChosen] = useState("");
  const [hint, setHint] = useState(null);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const asked = useRef(ask);
  asked.current = ask;
  useEffect(() => { get("/api/play").then(({ games }) => setOffer(addresses(games.find((item) => item.game === game)?.strategies ?? [])), () => {}); }, [game]);
  const address = chosen || preferred(game, offer);
  useEffect(() => { setHint(null); setProblem(""); }, [ask]);
  const request = () => {
    const now = (act) => (result) => { setBusy(false); if (asked.current === ask) act(result); }; // a late answer is about another position
    setBusy(true);
    setProblem("");
    post(`/api/play/${id}/hint`, { strategy: address }).then(now(setHint), now((error) => setProblem(explained(error))));
  };
  const best = hint?.actions.find((action) => action.best);
  return html`<section class="panel hint"><h2>${t("Hint")}</h2><div class="actions">
      <select aria-label=${t("Strategy")} value=${address} onChange=${(event) => setChosen(event.target.value)}>${offer.map((name) => html`<option value=${name}>${strategyName(name, t)}</option>`)}</select>
      <button class="act" disabled=${!ask || !address || busy} onClick=${request}>${t(busy ? "One moment" : "Hint")}</button></div>
    <${Problem} text=${problem} />
    ${best && html`<p role="status">${strategyName(hint.address, t)} ${t("would play")} <strong>${describe(best.notation, t)}</strong>${hint.reason ? `${t(": ")}${hint.reason}` : t(".")}</p>
      <${Bars} actions=${hint.actions} describe=${describe} mark="" t=${t} />`}</section>`;
}

/** What the others did last: the moves of each of them after the name. */
function News({ moves, names, describe, t }) {
  return html`<span class="count">${moves.map(([seat, notation], i) => {
    const before = moves[i - 1]?.[0] === seat ? t(", ") : `${i ? " · " : ""}${names[seat]}${t(": ")}`;
    return before + describe(notation, t);
  })}</span>`;
}

/** How the game ended for its player. */
function outcome({ left, scores, seat }) {
  const own = scores?.[seat];
  if (left) return "You left the table.";
  return own === undefined ? "The hand is over." : own > 0 ? "You won." : own < 0 ? "You lost." : "A draw.";
}

function Over({ shown, names, t }) {
  return html`<section class="panel"><h2>${t("Result")}</h2>
    ${shown.left && !shown.review && html`<p>${t(shown.ended ? "The hand is not in the log." : "The lobby plays the rest of your hand. Then it can be reviewed.")}</p>`}
    ${shown.scores && html`<${Scores} names=${names} scores=${shown.scores} />`}
    <div class="actions">${shown.review ? html`<a class="act primary" href=${`/hand/${shown.review}?seat=${shown.seat}`}>${t("Review this hand")}</a>`
      : !shown.ended && html`<button class="act primary" disabled>${t("Review this hand")}</button>`}
      <a class="act" href="/play">${t("Play again")}</a> ${shown.clonable && html`<a class="act" href="/clone">${t("Clone me")}</a>`}</div></section>`;
}

/** Whether it is our turn, asked for while the page is hidden and leaves its connection to others; null: ask the stream. */
function useLook(id, ended) {
  const [asked, setAsked] = useState(null);
  useEffect(() => {
    if (ended) return undefined;
    const look = () => { if (document.hidden) get(`/api/play/${id}/turn`).then((turn) => { if (document.hidden) setAsked(turn.asked); }, () => {}); };
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [id, ended]);
  return [asked, setAsked];
}

function Game({ id, onTitle, t }) {
  const [shown, setShown] = useState(null);
  const [problem, setProblem] = useState("");
  const [sent, setSent] = useState("");
  const [gone, setGone] = useState("");
  const [looked, setLooked] = useLook(id, Boolean(shown?.ended));
  const place = useRef(null);
  useEffect(() => setProblem(""), [shown?.ask]);
  useEffect(() => { // the control that was pressed may have gone: let the next Tab reach the board
    if (document.activeElement === document.body) place.current?.focus({ preventScroll: true });
  }, [shown?.ask]);
  useEffect(() => {
    const stop = stream(`/api/play/${id}`, (message) => {
      setShown(message);
      setLooked(null);
      if (message.ended) stop();
    }, (connected, refused) => {
      setProblem(connected ? "" : t("The connection is lost. Trying again."));
      if (refused) setGone(explained(refused));
    });
    return stop;
  }, [id]);
  const over = shown?.scores || shown?.state === "over"; // a game may end with a question open
  const asked = !over && shown?.ask && sent !== shown.ask;
  const { board, names } = useTable(shown && { ...shown, lobby: "browser" }, onTitle, t, looked ?? asked ? t("Your turn.") : "");
  if (gone) return html`<${Gone} title=${t("Play a game")} text=${gone} href="/play" link=${t("Play another game.")} />`;
  if (!shown || !board) return html`<p class="dim">${problem || "…"}</p>`;
  const act = (action) => {
    if (sent === shown.ask) return; // a second click on the way
    setSent(shown.ask);
    post(`/api/play/${id}/act`, { ask: shown.ask, action: action.notation }).catch((error) => { setProblem(explained(error)); setSent(""); });
  };
  const leave = () => {
    if (confirm(t("Leave the table? The lobby plays the rest of your hand."))) post(`/api/play/${id}/leave`).catch((error) => setProblem(explained(error)));
  };
  const Board = board.Board;
  const legal = over ? undefined : asked ? shown.legal : [];
  const news = over || !shown.view ? [] : board.recent(shown.view).filter(([seat]) => seat !== shown.seat);
  const turn = over ? t(outcome(shown)) : legal.length ? t("Your turn.") : shown.state === "playing" ? t("The others are thinking.") : "";
  return html`<h1>${gameName(shown.game, t)}</h1>
    ${shown.state === "waiting" || shown.state === "connecting" ? html`<p class="notice" role="status">${t("Your opponents are sitting down.")}</p>` : null}
    ${shown.notice && !shown.left && html`<p class="notice" role="status">${said(shown.notice)}</p>`}
    <div class="columns"><div>
      <div class="turn-note"><${Problem} text=${shown.state === "over" ? "" : problem} />
        ${shown.acted && !shown.left && html`<p class="notice" role="status">${t(shown.acted.reason === "timeout" ? "Your time ran out. The lobby chose" : "The lobby refused your moves. It chose")} <strong>${board.describe(shown.acted.action, t)}</strong>${t(".")}</p>`}
        <p class="news" role="status">${news.length > 0 && html`<${News} moves=${news} names=${names} describe=${board.describe} t=${t} /> `}${turn}</p>
        ${!over && html`<${Clock} leftMs=${shown.left_ms} t=${t} />`}</div>
      <div class="place" ref=${place} tabindex="-1">${shown.view && html`<${Board} position=${{ seat: shown.seat, view: shown.view, views: shown.views ?? undefined, players: names }} legal=${legal} onAct=${legal?.length ? act : undefined} t=${t} />`}</div></div>
      <aside>${over ? html`<${Over} shown=${shown} names=${names} t=${t} />`
        : html`${shown.view && html`<${Hint} id=${id} game=${shown.game} ask=${shown.ask} describe=${(notation) => board.describe(notation, t, [shown.view])} t=${t} />`}
          <${HowToPlay} game=${shown.game} t=${t} />
          <div class="actions"><button class="act" onClick=${leave}>${t("Leave")}</button></div>`}
        <${Said} lines=${shown.chat ?? []} t=${t} /></aside></div>`;
}

export function Page({ here, onTitle, t, go }) {
  const id = here.split("?")[0].slice("/play/".length);
  return id ? html`<${Game} key=${id} id=${id} onTitle=${onTitle} t=${t} />` : html`<${Setup} t=${t} go=${go} />`;
}

// A logged hand: step through it, see what was considered at each decision, and let another strategy review it.
import { html, useEffect, useMemo, useState } from "../html.js";
import { explained, get } from "../api.js";
import { useTable } from "../boards/index.js";
import { Logged } from "../candidates.js";
import { Said } from "../chat.js";
import { Curve } from "../curve.js";
import { gameName, strategyName } from "../names.js";
import { Gone, Problem } from "../problem.js";
import { Judgement, ReviewPanel, Severity, mistakes, useReview } from "../review.js";
import { save } from "../save.js";
import { Result } from "../scores.js";

/** The lines of the curve: each seat's own values, else those of the reviewer. */
function linesOf(hand, review, decisions) {
  const lines = hand.names.map((label, seat) => ({ label, points: new Map([...review.judged.values()].filter((judged) => judged.seat === seat && judged.value !== null).map((judged) => [judged.position, judged.value])) }));
  const own = new Map([...decisions].filter(([, decision]) => decision.value !== null).map(([at, decision]) => [at, decision.value]));
  return [{ label: `${hand.names[hand.seat]} (${hand.strategy})`, points: own }, ...lines];
}

function useKeys(moves) {
  useEffect(() => {
    const onKey = (event) => {
      if (event.target.closest?.("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
      if (moves[event.key] === undefined) return;
      moves[event.key]();
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
}

function Steps({ at, last, move, label, children, t }) {
  const button = (to, sign, name, off) => html`<button class="act" title=${t(name)} aria-label=${t(name)} disabled=${off} onClick=${() => move(to)}>${sign}</button>`;
  return html`<div class="actions steps" role="toolbar" aria-label=${t("Moves")}>
    <span class="count" role="status">${at} / ${last}${label}</span>
    ${button(0, "|◀", "First", at === 0)} ${button(at - 1, "◀", "Previous", at === 0)}
    ${button(at + 1, "▶", "Next", at === last)} ${button(last, "▶|", "Last", at === last)} ${children}</div>`;
}

function Hand({ hand, board, path, search, go, t }) {
  const review = useReview(hand.name);
  const [everything, setEverything] = useState(true);
  const [copied, setCopied] = useState(false);
  const [unsaved, setUnsaved] = useState(""); // why the file could not be written
  const last = Math.max(0, hand.positions.length - 1);
  const within = (to) => Math.max(0, Math.min(last, to || 0));
  const at = within(Number(new URLSearchParams(search).get("at")));
  const asked = Number(new URLSearchParams(search).get("seat") ?? hand.seat);
  const position = hand.positions[at];
  const seat = position?.views[asked] ? asked : hand.seat;
  const now = () => within(Number(new URLSearchParams(location.search).get("at"))); // a key may come before the next drawing
  const show = (to, from) => { setCopied(false); go(`${path}?at=${within(to)}${from === hand.seat ? "" : `&seat=${from}`}`, true); };
  const move = (to) => show(to, seat);
  const moveInView = (to) => { move(to); document.querySelector(".board").scrollIntoView({ block: "nearest" }); }; // from a list far below it
  const decisions = useMemo(() => new Map(hand.decisions.filter((decision) => decision.role === "live").map((decision) => [decision.position, decision])), [hand.decisions]);
  const describe = (notation, number) => board.describe(notation, t, Object.values(hand.positions[number]?.views ?? {}));
  const here = (notation) => describe(notation, at);
  const bad = mistakes(review).map((judged) => judged.position);
  useKeys({
    ArrowLeft: () => move(now() - 1), ArrowRight: () => move(now() + 1), Home: () => move(0), End: () => move(last),
    n: () => moveInView(bad.find((position) => position > now()) ?? now()), p: () => moveInView(bad.findLast((position) => position < now()) ?? now()),
  });
  const [decision, judged] = [decisions.get(at), review.judged.get(at)];
  const share = () => navigator.clipboard.writeText(location.href).then(() => setCopied(true), () => {});
  const played = position?.notation ? ` · ${hand.names[position.mover]}${t(": ")}${describe(position.notation, at - 1)}` : "";
  const Board = board.Board;
  return html`<h1>${gameName(hand.game, t)} <span class="count about">${hand.names.join(t(", "))} · ${new Date(hand.started).toLocaleString()}</span></h1>
    <div class="columns"><div>
      ${position ? html`<${Board} t=${t} position=${{ seat, view: position.views[seat], views: everything ? position.views : undefined, players: hand.names }} />
        <${Steps} at=${at} last=${last} move=${move} label=${played} t=${t}>
          <button class="act" aria-pressed=${everything} disabled=${Object.keys(position.views).length < 2} onClick=${() => setEverything(!everything)}>${t("All hands")}</button>
          <select aria-label=${t("Seat view")} value=${seat} onChange=${(event) => show(at, Number(event.target.value))}>
            ${hand.names.map((player, i) => html`<option value=${i} disabled=${!position.views[i]}>${player}</option>`)}</select>
          ${navigator.clipboard && html`<button class="act" onClick=${share}>${t(copied ? "Copied" : "Copy link")}</button>`}
          <button class="act" onClick=${() => save({ hand, decisions, board, describe, review, seat, everything, at, t }).then(() => setUnsaved(""), (error) => setUnsaved(explained(error)))}>${t("Save as file")}</button>
        <//><${Problem} text=${unsaved} />` : html`<p class="notice">${t("This hand cannot be replayed.")}${t(" ")}${hand.problems.join(" ")}</p>`}
      ${judged?.severity && html`<p class="notice" role="status"><${Severity} severity=${judged.severity} t=${t} /> ${hand.names[judged.seat]}${t(": ")}${here(judged.played)}${t(".")}${t(" ")}${strategyName(review.address, t)} ${t("would play")} <strong>${here(judged.best)}</strong>${t(".")}</p>`}
      <${Curve} lines=${linesOf(hand, review, decisions)} last=${last} at=${at} onMove=${move} t=${t} />
    </div>
    <aside>
      ${decision ? html`<${Logged} decision=${decision} describe=${here} t=${t} />` : position && !judged && html`<p class="panel dim">${at === last
        ? t("The hand ends here. This is the log of {player}. Step back to one of its moves to see what it considered.", { player: hand.names[hand.seat] })
        : t("No decision is logged here: at this position somebody else moves. This is the log of {player}. Step on to one of its moves to see what it considered.", { player: hand.names[hand.seat] })}</p>`}
      ${judged && html`<${Judgement} judged=${judged} address=${review.address} describe=${here} t=${t} />`}
      <${ReviewPanel} hand=${hand} review=${review} describe=${describe} at=${at} onMove=${moveInView} t=${t} />
      <${Result} hand=${hand} names=${hand.names} t=${t}>${hand.away.length > 0 && html`<p class="count">${t("{players}: away. The lobby may have moved for them.", { players: hand.away.map((seat) => hand.names[seat]).join(t(", ")) })}</p>`}<//>
      <${Said} lines=${hand.chat} t=${t} />
    </aside></div>`;
}

export function Page({ here, onTitle, t, go }) {
  const [path, search] = here.split("?");
  const name = path.slice("/hand/".length);
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => { get(`/api/hands/${name}`).then(setFound, (error) => setProblem(explained(error))); }, [name]);
  const { board, names } = useTable(found, onTitle, t);
  if (problem) return html`<${Gone} title=${t("Hand")} text=${problem} href="/hands" link=${t("Go to the hands.")} />`;
  if (!found || !board) return html`<p class="dim">…</p>`;
  return html`<${Hand} key=${name} hand=${{ ...found, names }} board=${board} path=${path} search=${search} go=${go} t=${t} />`;
}

// A logged hand: step through it, and see what was considered at each decision.
import { html, useEffect, useMemo, useState } from "../html.js";
import { get } from "../api.js";
import { boardOf } from "../boards/index.js";

function Candidates({ decision, describe, t }) {
  const best = Math.max(...decision.actions.map((action) => action.probability ?? action.value ?? 0), 1e-9);
  return html`<section class="panel" aria-label=${t("candidates")}>
    <h2>${t("candidates")}</h2>
    <p class="count">${decision.strategy} · ${decision.elapsed_ms.toFixed(1)} ms${decision.value !== null ? ` · ${t("value")} ${decision.value.toFixed(2)}` : ""}
      ${decision.fallback && html` <span class="badge bad">${t("fallback")}: ${decision.fallback}</span>`}</p>
    <ol class="candidates">${decision.actions.slice(0, 12).map((action) => {
      const weight = action.probability ?? action.value;
      const share = weight === null ? 0 : Math.max(0, weight / best);
      return html`<li key=${action.action} class=${action.chosen ? "chosen" : ""}>
        <span>${describe(action.notation, t)}${action.chosen ? html`<span class="visually-hidden"> (${t("chosen")})</span>` : null}</span>
        <span class="bar"><span style=${{ width: `${Math.round(100 * Math.min(1, share))}%` }}></span></span>
        <span>${action.probability !== null ? `${(100 * action.probability).toFixed(1)} %` : ""} ${action.value !== null ? action.value.toFixed(2) : ""}</span></li>`;
    })}</ol></section>`;
}

export function Page({ here, t, go }) {
  const [path, search] = here.split("?");
  const name = path.slice("/hand/".length);
  const [hand, setHand] = useState(null);
  const [board, setBoard] = useState(null);
  const [problem, setProblem] = useState("");
  const [seat, setSeat] = useState(null);
  const [everything, setEverything] = useState(true);
  useEffect(() => { get(`/api/hands/${name}`).then((found) => { setHand(found); setSeat(found.seat); }, (error) => setProblem(error.message)); }, [name]);
  useEffect(() => { if (hand) boardOf(hand.game).then((module) => setBoard(() => module)); }, [hand?.game]);
  const last = (hand?.positions.length ?? 1) - 1;
  const at = Math.max(0, Math.min(last, Number(new URLSearchParams(search).get("at") ?? 0)));
  const move = (to) => go(`${path}?at=${Math.max(0, Math.min(last, to))}`);
  useEffect(() => {
    const onKey = (event) => {
      if (event.target.closest?.("input, select, textarea")) return;
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
      if (to !== undefined) { move(to); event.preventDefault(); }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  const decisions = useMemo(() => new Map((hand?.decisions ?? []).filter((d) => d.role === "live").map((d) => [d.position, d])), [hand]);
  if (problem) return html`<p class="notice bad" role="alert">${problem}</p>`;
  if (!hand || !board) return html`<p class="dim">…</p>`;
  const position = hand.positions[at];
  const shownSeat = position?.views[seat] ? seat : hand.seat;
  const decision = decisions.get(at);
  const Board = board.Board;
  return html`<h1>${hand.game} <span class="count">${hand.names.join(", ")}</span></h1>
    <div class="columns"><div>
      ${position ? html`<${Board} t=${t} position=${{ seat: shownSeat, view: position.views[shownSeat], views: everything ? position.views : undefined, players: hand.names }} />`
        : html`<p class="notice">${t("This hand cannot be replayed.")} ${hand.problems.join(" ")}</p>`}
      <div class="actions" role="toolbar" aria-label=${t("moves")}>
        <button class="act" onClick=${() => move(0)} disabled=${at === 0}>|◀ <span class="visually-hidden">${t("first")}</span></button>
        <button class="act" onClick=${() => move(at - 1)} disabled=${at === 0}>◀ <span class="visually-hidden">${t("previous")}</span></button>
        <span class="count" role="status">${at} / ${last}${position?.notation ? ` · ${hand.names[position.mover]}: ${board.describe(position.notation, t)}` : ""}</span>
        <button class="act" onClick=${() => move(at + 1)} disabled=${at === last}>▶ <span class="visually-hidden">${t("next")}</span></button>
        <button class="act" onClick=${() => move(last)} disabled=${at === last}>▶| <span class="visually-hidden">${t("last")}</span></button>
        <button class="act" aria-pressed=${everything} onClick=${() => setEverything(!everything)}>${t(everything ? "all hands" : "seat view")}</button>
        <select aria-label=${t("seat view")} value=${seat} onChange=${(event) => setSeat(Number(event.target.value))}>
          ${hand.names.map((player, i) => html`<option value=${i} disabled=${!position?.views[i]}>${player}</option>`)}</select>
      </div></div>
      <aside>${decision ? html`<${Candidates} decision=${decision} describe=${board.describe} t=${t} />`
        : html`<p class="panel dim">${t("No decision of this host at this position.")}</p>`}
        ${hand.scores && html`<section class="panel"><h2>${t("result")}</h2><table class="list"><tbody>${hand.names.map((player, i) => html`<tr><td>${player}</td><td class="number">${hand.scores[i]}</td></tr>`)}</tbody></table></section>`}
      </aside></div>`;
}

// "Clone me": train fm-clone on the viewer's own hands, see how often it agrees with them, and play against it.
import { html, useEffect, useState } from "../html.js";
import { explained, get, post } from "../api.js";
import { Curve } from "../curve.js";
import { Job } from "../job.js";
import { gameName } from "../names.js";
import { Missing, Problem } from "../problem.js";

const percent = (share) => `${(100 * share).toFixed(0)} %`;

/** Agreement over the number of hands that were learnt from. */
function Agreement({ curve, t }) {
  const measured = (curve ?? []).filter((point) => point.held_out_top1 !== undefined);
  if (!measured.length) return html`<p class="notice">${t("No hand is held out yet: play more to measure the clone.")}</p>`;
  const points = new Map(measured.map((point) => [point.hands, 100 * point.held_out_top1]));
  return html`<${Curve} title="Agreement with you on hands it never saw, by number of hands" lines=${[{ label: "%", points }]} t=${t} />`;
}

function Clone({ clone, t }) {
  const { hands, held_out_top1: agreement } = clone.figures ?? {};
  return html`<section class="panel"><h2>${clone.version}</h2>
    <p>${gameName(clone.game, t)} · ${t("made from {hands} hands", { hands })}${agreement !== undefined ? ` · ${t("agreement with you on hands it never saw")}${t(": ")}${percent(agreement)}` : ""}</p>
    <${Agreement} curve=${clone.curve} t=${t} />
    <div class="actions"><a class="act primary" href=${`/play?${new URLSearchParams({ game: clone.game, opponent: clone.address })}`}>${t("Play against it")}</a></div></section>`;
}

export function Page({ t }) {
  const [found, setFound] = useState(null);
  const [game, setGame] = useState("");
  const [agreed, setAgreed] = useState(false);
  const [tempo, setTempo] = useState(false);
  const [job, setJob] = useState("");
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const load = () => get("/api/clone").then((about) => {
    setFound(about);
    if (about.last) setJob(about.last); // one that has ended goes on showing its result
    setGame((old) => old || Object.entries(about.hands ?? {}).sort(([, a], [, b]) => b - a)[0]?.[0] || "");
  }, (error) => setProblem(explained(error)));
  useEffect(() => { load(); }, []);
  const train = (event) => {
    event.preventDefault();
    setProblem("");
    setBusy(true);
    post("/api/clone", { game, consents: agreed, tempo }).then((started) => { setJob(started.job); return load(); }, (error) => setProblem(explained(error)))
      .then(() => setBusy(false));
  };
  const revoke = () => {
    if (!confirm(t("Take back your consent? No strategy is trained to imitate you from then on. Clones that exist stay."))) return;
    setAgreed(false);
    post("/api/clone/revoke").then(load, (error) => setProblem(explained(error)));
  };
  if (!found) return html`<h1>${t("Clone me")}</h1>${problem ? html`<${Missing} text=${problem} t=${t} />` : html`<p class="dim">…</p>`}`;
  if (!found.player) return html`<h1>${t("Clone me")}</h1><p class="notice">${t("Play a hand first: then this page knows you.")}${t(" ")}<a href="/play">${t("Play a game")}</a></p>`;
  const [hands, enough] = [found.hands[game], found.hands[game] >= found.needed];
  return html`<h1>${t("Clone me")} <span class="count">${found.player}</span></h1>
    <p class="dim">${t("A clone learns to play as you do from the hands that you played here. Hands that it never saw tell how often it agrees with you.")}</p>
    <form class="panel setup" onSubmit=${train}>
      <label>${t("Game")}<select value=${game} onChange=${(event) => setGame(event.target.value)}>${Object.keys(found.hands).map((name) => html`<option value=${name}>${t(name)}</option>`)}</select></label>
      <p class="count">${t("Hands played")}${t(": ")}${hands} · ${t("needed")}${t(": ")}${found.needed}${enough ? "" : html`<br />${t("Play some more hands first.")}`}
        <progress value=${Math.min(hands, found.needed)} max=${found.needed} aria-label=${t("Hands played")}></progress></p>
      ${!found.consents && html`<label class="check"><input type="checkbox" checked=${agreed} onChange=${(event) => setAgreed(event.target.checked)} /> ${t("A strategy may be trained to imitate me. I can take this back.")}</label>`}
      <label class="check"><input type="checkbox" checked=${tempo} onChange=${(event) => setTempo(event.target.checked)} /> ${t("It also takes as long for its moves as I do.")}</label>
      <div class="actions"><button class="act primary" disabled=${busy || found.job || !enough || !(found.consents || agreed)}>${t("Train a clone")}</button>
        ${found.consents && html`<button type="button" class="act" onClick=${revoke}>${t("Take back my consent")}</button>`}</div>
      <${Problem} text=${problem} />
    </form>
    ${job && html`<section class="panel"><${Job} key=${job} id=${job} onDone=${load} t=${t}>${(results) => html`<p class="notice">${results.at(-1).version}</p>`}<//></section>`}
    ${found.clones.length > 0 && html`<h2>${t("Your clones")}</h2>${found.clones.map((clone) => html`<${Clone} key=${clone.version} clone=${clone} t=${t} />`)}`}`;
}

// A long command that the server runs: its progress while it runs, a button that cancels it, then what came of it.
import { html, useEffect, useState } from "./html.js";
import { explained, post, stream } from "./api.js";
import { said } from "./i18n.js";
import { Problem } from "./problem.js";

/** `children`: what to show of the results once it is done, a function of them. */
export function Job({ id, onDone = () => {}, children, t }) {
  const [job, setJob] = useState(null);
  const [ending, setEnding] = useState(false);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = stream(`/api/jobs/${id}`, (message) => {
      setJob(message);
      if (message.state !== "running") { stop(); onDone(message); }
    }, (connected, refused) => {
      setProblem(connected ? "" : t("The connection is lost. Trying again."));
      if (refused) setJob({ state: "failed", problems: [refused] });
    });
    return stop;
  }, [id]);
  if (!job) return html`<p class="dim">${problem || "…"}</p>`;
  if (job.state === "failed") return html`<${Problem} text=${`${t("This failed")}${t(": ")}${job.problems.map(explained).join("; ")}`} />`;
  if (job.state === "cancelled") return html`<p class="notice" role="status">${t("Cancelled.")}</p>`;
  if (job.state === "done") return html`<div role="status">${children(job.results)}</div>`;
  const cancel = () => {
    if (!confirm(t("Cancel this? What it has done so far is lost."))) return;
    setEnding(true);
    post(`/api/jobs/${id}/cancel`).then(() => setProblem(""), (error) => { setEnding(false); setProblem(explained(error)); });
  };
  const { done = 0, total, note = "" } = job.progress;
  return html`<p class="count" role="status">${total ? `${done} / ${total}` : t("One moment")} ${said(note)}</p>
    <progress value=${total ? done : undefined} max=${total || 1} aria-label=${job.job}></progress>
    <div class="actions"><button type="button" class="act" disabled=${ending} onClick=${cancel}>${t("Cancel")}</button></div>
    <${Problem} text=${problem} />`;
}

// "Save as file": a hand as one HTML page that needs nothing else. Every position is drawn now; a few lines step through.
import { html, render } from "./html.js";
import { fetched } from "./api.js";
import { Logged } from "./candidates.js";
import { gameName } from "./names.js";
import { Judgement, mistakes } from "./review.js";

const text = (path) => fetched(path).then((answer) => answer.text());
const escaped = (value) => value.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

function drawn(content) {
  const place = document.createElement("div");
  render(content, place);
  const markup = place.innerHTML.replaceAll("/static/tiles.svg#", "#");
  render(null, place);
  return markup;
}

// Runs in the saved page. It is written as a function so that it is checked and highlighted as code.
function step() {
  const all = [...document.querySelectorAll(".position")];
  let at = 0;
  const show = (to) => {
    at = Math.max(0, Math.min(all.length - 1, to));
    all.forEach((section, i) => { section.hidden = i !== at; });
    document.getElementById("where").textContent = `${at} / ${all.length - 1}`;
  };
  document.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) { show(to); event.preventDefault(); }
  });
  document.addEventListener("click", (event) => {
    const { to, by } = event.target.closest("[data-to], [data-by]")?.dataset ?? {};
    if (to !== undefined) show(Number(to)); else if (by !== undefined) show(at + Number(by));
  });
  show(Number(document.body.dataset.at));
}

/** The whole page as text. */
export async function page({ hand, decisions, board, describe, review, seat, everything, at, t }) {
  const [style, tiles] = await Promise.all([text("/static/style.css"), hand.game === "mahjong" ? text("/static/tiles.svg") : ""]);
  const sections = hand.positions.map((position, i) => {
    const [decision, judged] = [decisions.get(i), review.judged.get(i)];
    const here = (notation) => describe(notation, i);
    return drawn(html`<section class="position" hidden><div class="columns"><div>
      <${board.Board} t=${t} position=${{ seat, view: position.views[seat], views: everything ? position.views : undefined, players: hand.names }} />
      ${position.notation && html`<p>${hand.names[position.mover]}${t(": ")}${describe(position.notation, i - 1)}</p>`}</div>
      <aside>${decision && html`<${Logged} decision=${decision} describe=${here} t=${t} />`}
        ${judged && html`<${Judgement} judged=${judged} address=${review.address} describe=${here} t=${t} />`}</aside></div></section>`);
  });
  const list = mistakes(review).map((judged) => drawn(html`<button class="act" data-to=${judged.position}>${judged.severity ? t(judged.severity) : `${describe(judged.played, judged.position)} → ${describe(judged.best, judged.position)}`} · ${judged.position}</button>`));
  return `<!doctype html><html lang="${document.documentElement.lang}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>${escaped(`${gameName(hand.game, t)}${t(": ")}${hand.names.join(t(", "))}`)}</title><style>${style}</style></head><body data-at="${at}"><div hidden>${tiles}</div><main>
<h1>${escaped(gameName(hand.game, t))} <span class="count about">${escaped(hand.names.join(t(", ")))} · ${escaped(new Date(hand.started).toLocaleString())}</span></h1>
<div class="actions"><button class="act" data-by="-1">◀</button><span id="where" class="count"></span><button class="act" data-by="1">▶</button>${list.join("")}</div>
${sections.join("\n")}</main><script>(${step})()</script></body></html>`;
}

export async function save(shown) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([await page(shown)], { type: "text/html" }));
  link.download = `${shown.hand.game}-${shown.hand.name.slice(0, 12)}.html`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

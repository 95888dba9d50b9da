// What was said at a table. Each line is a text node: markup in it stays text.
import { html } from "./html.js";

export function Said({ lines, t }) {
  return lines.length > 0 && html`<section class="panel said"><h2>${t("Chat")}</h2><table class="list"><tbody>
    ${lines.map((line) => html`<tr><td>${line.player}</td><td>${line.text}</td></tr>`)}</tbody></table></section>`;
}

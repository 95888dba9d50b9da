// What went wrong, as pages show it.
import { html } from "./html.js";

/** A problem, and in `children` what to do about it. Nothing where `text` is empty. */
export const Problem = ({ text, children }) => (text ? html`<p class="notice bad" role="alert">${text}${children}</p>` : null);

/** What a page needs did not come. */
export const Missing = ({ text, t }) => html`<${Problem} text=${text}>${t(" ")}<a href="" target="_self">${t("Try again.")}</a><//>`;

/** Nothing is there yet: an operator can start something, everybody can play. */
export const Empty = ({ text, session, t }) => html`<p class="notice">${text} ${session.viewer === "operator"
  ? html`<code>bothost demo</code> ${t("starts some.")}` : html`<a href="/play">${t("Play a game")}</a>`}</p>`;

/** A page of which nothing but its problem can be shown. `link`: where to go from here. */
export function Gone({ title, text, href, link }) {
  return html`<h1>${title}</h1><${Problem} text=${text} /><p><a href=${href}>${link}</a></p>`;
}

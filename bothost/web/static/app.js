// The frame of every page: navigation, settings, and which page a path shows.
import { html, render, useEffect, useRef, useState } from "./html.js";
import { explained, get, post } from "./api.js";
import { currentLanguage, setLanguage, t } from "./i18n.js";
import { Missing, Problem } from "./problem.js";
import { keep, kept } from "./storage.js";

const PAGES = [
  { path: "/", module: "./pages/tables.js", title: "Tables" },
  { path: "/play", module: "./pages/play.js", title: "Play a game" },
  { path: "/hands", module: "./pages/hands.js", title: "Hands" },
  { path: "/models", module: "./pages/models.js", title: "Models" },
  { path: "/training", module: "./pages/training.js", title: "Training" },
  { path: "/health", module: "./pages/health.js", title: "Health" },
];
const HIDDEN = [ // `section`: the page of the navigation to which it belongs
  { path: "/clone", section: "/play", module: "./pages/clone.js", title: "Clone me" },
  { path: "/hand/*", section: "/hands", module: "./pages/hand.js", title: "Hand" },
  { path: "/play/*", section: "/play", module: "./pages/play.js", title: "Play a game" },
  { path: "/table/*", section: "/", module: "./pages/table.js", title: "Table" },
];

function pageOf(path) {
  const address = path.replace(/^(\/\w+\/)[^/]+$/, "$1*");
  return [...PAGES, ...HIDDEN].find((page) => page.path === address);
}

/** Change the address without loading the page anew. `replace`: the browser's "back" skips the address that is left. */
export function go(path, replace = false) {
  if (replace) history.replaceState(null, "", path); else history.pushState(null, "", path);
  dispatchEvent(new Event("popstate"));
}

function useLocation() {
  const [here, setHere] = useState(location.pathname + location.search);
  useEffect(() => {
    const onChange = () => setHere(location.pathname + location.search);
    const onClick = (event) => {
      const link = event.target.closest?.("a[href^='/']");
      if (!link || link.target || link.hasAttribute("download") || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      go(link.getAttribute("href"));
    };
    addEventListener("popstate", onChange);
    document.addEventListener("click", onClick);
    return () => { removeEventListener("popstate", onChange); document.removeEventListener("click", onClick); };
  }, []);
  return here;
}

function Settings({ onLanguage }) {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "");
  const choose = (next) => {
    setTheme(next);
    if (next) document.documentElement.dataset.theme = next; else delete document.documentElement.dataset.theme;
    keep("theme", next);
  };
  return html`<div class="settings">
    <select aria-label=${t("Theme")} value=${theme} onChange=${(event) => choose(event.target.value)}>
      <option value="">${t("System")}</option><option value="light">${t("Light")}</option><option value="dark">${t("Dark")}</option></select>
    <select aria-label=${t("Language")} value=${currentLanguage()} onChange=${(event) => { setLanguage(event.target.value); onLanguage(event.target.value); }}>
      <option value="en">English</option><option value="zh">中文</option></select>
  </div>`;
}

function Login({ onDone }) {
  const [problem, setProblem] = useState("");
  const field = useRef(null);
  useEffect(() => { field.current.focus(); }, []);
  const submit = (event) => {
    event.preventDefault();
    post("/api/login", { password: new FormData(event.target).get("password") }).then(onDone, (error) => setProblem(explained(error)));
  };
  return html`<form class="panel" onSubmit=${submit}><h1>${t("Log in")}</h1>
    <label>${t("Password")}<input type="password" name="password" autocomplete="current-password" required ref=${field} /></label>
    <div class="actions"><button class="act primary">${t("Log in")}</button></div>
    <${Problem} text=${problem} /></form>`;
}

function Page({ page, here, session, onTitle }) {
  const [shown, setShown] = useState(null);
  const [problem, setProblem] = useState(false);
  useEffect(() => {
    setShown(null);
    setProblem(false);
    if (page) import(page.module).then((module) => setShown(() => module.Page), () => setProblem(true));
  }, [page]);
  if (!page) return html`<h1>${t("Not found")}</h1><p>${t("This page does not exist.")}${t(" ")}<a href="/">${t("Go to the tables.")}</a></p>`;
  if (problem) return html`<h1>${t(page.title)}</h1><${Missing} text=${t("This page cannot be loaded.")} t=${t} />`;
  const Shown = shown;
  return Shown ? html`<${Shown} here=${here} session=${session} onTitle=${onTitle} t=${t} go=${go} />` : html`<p class="dim">…</p>`;
}

function App() {
  const here = useLocation();
  const [session, setSession] = useState(null);
  const [language, setLanguageShown] = useState(currentLanguage());
  const [about, setAbout] = useState({}); // what a page gives an address: a title, such as a game and its players, and a note before it
  const load = () => get("/api/session").then(setSession, (error) => setSession((old) => old ?? { problem: explained(error) }));
  useEffect(() => {
    load();
    addEventListener("newsession", load);
    return () => removeEventListener("newsession", load);
  }, []);
  const path = here.split("?")[0];
  useEffect(() => { if (session?.viewer === "operator" && path === "/login") go("/", true); }, [session, path]);
  const page = pageOf(path);
  const login = session && session.viewer !== "operator" && path === "/login";
  const title = about.path === path ? about.title : t(login ? "Log in" : page?.title ?? "Not found");
  const note = about.path === path && about.note ? `${about.note}${t(" ")}` : "";
  useEffect(() => { document.title = `${note}${title} · bothost`; }, [note, title, language]);
  if (!session) return html`<main><p class="dim">…</p></main>`;
  if (session.problem) return html`<main id="main"><${Missing} text=${session.problem} t=${t} /></main>`;
  if (!session.viewer) return html`<main id="main"><${Login} onDone=${load} /></main>`;
  const hidden = PAGES.includes(page) && !session.pages.includes(page.path); // from everybody but operators
  return html`<a class="skip" href="#main">${t("Skip to the page")}</a>
    <header class="top"><a class="brand" href="/">bothost</a>
      <nav aria-label=${t("Pages")}>${PAGES.filter((item) => session.pages.includes(item.path)).map((item) => html`<a key=${item.path} href=${item.path}
        aria-current=${path === item.path ? "page" : page?.section === item.path ? "true" : undefined}>${t(item.title)}</a>`)}
        ${session.viewer !== "operator" && html`<a href="/login" aria-current=${login ? "page" : undefined}>${t("Log in")}</a>`}</nav>
      <${Settings} onLanguage=${setLanguageShown} /></header>
    <p class="visually-hidden" role="status">${title}</p>
    <main id="main" tabindex="-1">${hidden || login ? html`<${Login} onDone=${load} />` : html`
      <${Page} page=${page} here=${here} session=${session} key=${page?.path}
      onTitle=${(text, note = "") => setAbout((old) => (old.path === path && old.title === text && old.note === note ? old : { path, title: text, note }))} />`}</main>`;
}

if (kept("theme")) document.documentElement.dataset.theme = kept("theme");
document.documentElement.lang = currentLanguage();
const place = document.getElementById("app");
place.replaceChildren();
const first = pageOf(location.pathname);
if (first) import(first.module).catch(() => {}); // while the session is asked for
render(html`<${App} />`, place);

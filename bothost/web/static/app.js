// The frame of every page: navigation, settings, and which page a path shows.
import { html, render, useEffect, useState } from "./html.js";
import { get, post } from "./api.js";
import { currentLanguage, setLanguage, t } from "./i18n.js";

const PAGES = [
  { path: "/", module: "./pages/tables.js", title: "tables" },
  { path: "/play", module: "./pages/play.js", title: "play a game" },
  { path: "/hands", module: "./pages/hands.js", title: "hands" },
  { path: "/models", module: "./pages/models.js", title: "models" },
  { path: "/training", module: "./pages/training.js", title: "training" },
  { path: "/health", module: "./pages/health.js", title: "health" },
];
const HIDDEN = [
  { path: "/clone", module: "./pages/clone.js", title: "clone me" },
  { path: "/hand/", module: "./pages/hand.js", title: "hand" },
  { path: "/play/", module: "./pages/play.js", title: "play a game" },
  { path: "/table/", module: "./pages/table.js", title: "live" },
];

function pageOf(path) {
  return PAGES.find((page) => page.path === path) ?? HIDDEN.find((page) => path.startsWith(page.path));
}

/** Change the address without loading the page anew. */
export function go(path) {
  history.pushState(null, "", path);
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
    try { localStorage.setItem("theme", next); } catch { /* private browsing keeps nothing */ }
  };
  return html`<div class="settings">
    <select aria-label=${t("theme")} value=${theme} onChange=${(event) => choose(event.target.value)}>
      <option value="">${t("system")}</option><option value="light">${t("light")}</option><option value="dark">${t("dark")}</option></select>
    <select aria-label=${t("language")} value=${currentLanguage()} onChange=${(event) => { setLanguage(event.target.value); onLanguage(event.target.value); }}>
      <option value="en">English</option><option value="zh">中文</option></select>
  </div>`;
}

function Login({ onDone }) {
  const [problem, setProblem] = useState("");
  const submit = (event) => {
    event.preventDefault();
    post("/api/login", { password: new FormData(event.target).get("password") }).then(onDone, (error) => setProblem(error.message));
  };
  return html`<main id="main"><form class="panel" onSubmit=${submit}><h1>${t("log in")}</h1>
    <label>${t("password")}<input type="password" name="password" autocomplete="current-password" required /></label>
    <div class="actions"><button class="act primary">${t("log in")}</button></div>
    ${problem && html`<p class="notice bad" role="alert">${problem}</p>`}</form></main>`;
}

function Page({ page, here, session }) {
  const [shown, setShown] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    setShown(null);
    setProblem(null);
    if (page) import(page.module).then((module) => setShown(() => module.Page), setProblem);
  }, [page]);
  if (!page) return html`<p>This page does not exist. <a href="/">Go to the tables.</a></p>`;
  if (problem) return html`<p class="notice bad">${problem.message}</p>`;
  const Shown = shown;
  return Shown ? html`<${Shown} here=${here} session=${session} t=${t} go=${go} />` : html`<p class="dim">…</p>`;
}

function App() {
  const here = useLocation();
  const [session, setSession] = useState(null);
  const [, setLanguageShown] = useState(currentLanguage());
  const load = () => get("/api/session").then(setSession, () => setSession({ viewer: null }));
  useEffect(() => { load(); }, []);
  const path = here.split("?")[0];
  const page = pageOf(path);
  useEffect(() => { document.title = page ? `${t(page.title)} · bothost` : "bothost"; }, [page]);
  if (!session) return null;
  if (!session.viewer) return html`<${Login} onDone=${load} />`;
  return html`<a class="skip" href="#main">Skip to the page</a>
    <header class="top"><a class="brand" href="/">bothost</a>
      <nav aria-label="Pages">${PAGES.filter((item) => session.pages.includes(item.path)).map((item) => html`<a key=${item.path} href=${item.path}
        aria-current=${path === item.path ? "page" : undefined}>${t(item.title)}</a>`)}</nav>
      <${Settings} onLanguage=${setLanguageShown} /></header>
    <main id="main" tabindex="-1"><${Page} page=${page} here=${here} session=${session} key=${page?.path} /></main>`;
}

try {
  const theme = localStorage.getItem("theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* private browsing keeps nothing */ }
document.documentElement.lang = currentLanguage();
render(html`<${App} />`, document.getElementById("app"));

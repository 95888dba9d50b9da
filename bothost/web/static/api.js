// Requests to the server that served this page, and its stream of changes.
import { said, t } from "./i18n.js";

const RETRY_MS = 1000;
/** A stream that is silent for this long has lost its server: that sends something every 15 s. The browser may not notice. */
const SILENT_MS = 45_000;

export class ApiError extends Error {
  constructor(status, message, advice) {
    super(message);
    Object.assign(this, { status, advice });
  }
}

/** What went wrong and what to do about it, in one line. */
export const explained = (error) => [error.message, error.advice].filter(Boolean).map(said).join(t(": "));

/** `fetch`, with an error that people understand where no server is reached. */
export const fetched = (path, options) => fetch(path, options).catch((error) => {
  throw error.name === "AbortError" ? error : new ApiError(503, "The server does not answer.");
});

async function answered(answer) {
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new ApiError(answer.status, body.error ?? answer.statusText, body.advice);
  return body;
}

/** The answer, asked for once more in a new session where the server has forgotten this one, as it does when it restarts. */
async function asked(path, options) {
  const answer = await fetched(path, options);
  if (answer.status !== 401 || path === "/api/login") return answer;
  const { viewer } = await fetched("/api/session").then(answered);
  dispatchEvent(new Event("newsession")); // with another view of the pages, or the need to log in
  return viewer ? fetched(path, options) : answer;
}

export const get = (path, query = {}) => {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = new URLSearchParams(given).toString();
  return asked(search ? `${path}?${search}` : path, { headers: { Accept: "application/json" } }).then(answered);
};

export const post = (path, body = {}) =>
  asked(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }).then(answered);

/** Why the server refuses a stream, which the stream itself cannot tell; null where it may be tried again. */
async function refusal(path) {
  const reading = new AbortController();
  try {
    await asked(path, { signal: reading.signal }).then((answer) => answer.ok || answered(answer));
  } catch (error) {
    return error.status < 500 ? error : null;
  } finally {
    reading.abort();
  }
  return null;
}

/** Calls `onMessage` for each message of a stream; returns the function that ends it.
 *
 * `onState(connected, refused)`: `refused` is why the server will not send it, or not go on. After that nothing comes.
 * All tabs together have six connections to a server. So a hidden page closes its stream and opens it again when it is
 * shown, unless it `stays`.
 */
export function stream(path, onMessage, onState = () => {}, { stays = false } = {}) {
  let [source, ended, silence] = [null, false, 0];
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(() => { close(); onState(false); open(); }, SILENT_MS);
  };
  const open = () => {
    if (ended || source || (document.hidden && !stays)) return;
    const mine = new EventSource(path);
    source = mine;
    heard();
    mine.onopen = () => { heard(); onState(true); };
    mine.addEventListener("alive", heard);
    mine.onmessage = (event) => {
      heard();
      const message = JSON.parse(event.data);
      if (!message.error) { onMessage(message); return; }
      if (!message.passes) end();
      onState(false, message.passes ? undefined : new ApiError(500, message.error, message.advice));
    };
    mine.onerror = async () => {
      onState(false);
      if (mine.readyState !== EventSource.CLOSED) return; // it tries again by itself
      const refused = await refusal(path);
      if (mine !== source) return;
      close();
      if (refused) onState(false, refused); else setTimeout(open, RETRY_MS);
    };
  };
  const close = () => { clearTimeout(silence); source?.close(); source = null; };
  const follow = () => { if (document.hidden && !stays) close(); else open(); };
  const end = () => { ended = true; close(); document.removeEventListener("visibilitychange", follow); };
  document.addEventListener("visibilitychange", follow);
  open();
  return end;
}

// Requests to the server that served this page, and its stream of changes.

export class ApiError extends Error {
  constructor(status, message, advice) {
    super(message);
    Object.assign(this, { status, advice });
  }
}

async function answered(answer) {
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new ApiError(answer.status, body.error ?? answer.statusText, body.advice);
  return body;
}

export const get = (path, query = {}) => {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = new URLSearchParams(given).toString();
  return fetch(search ? `${path}?${search}` : path, { headers: { Accept: "application/json" } }).then(answered);
};

export const post = (path, body = {}) =>
  fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }).then(answered);

/** Calls `onMessage` for each message of a stream; returns the function that ends it. */
export function stream(path, onMessage, onState = () => {}) {
  const source = new EventSource(path);
  source.onopen = () => onState(true);
  source.onerror = () => onState(false);
  source.onmessage = (event) => onMessage(JSON.parse(event.data));
  return () => source.close();
}

// What the browser keeps from one visit to the next. Private browsing keeps nothing.

export function kept(key, fallback = "") {
  try { return localStorage.getItem(key) ?? fallback; } catch { return fallback; }
}

export function keep(key, value) {
  try { localStorage.setItem(key, value); } catch { /* then the next visit starts anew */ }
}

// Which board shows which game. A plugin brings its own: `/api/boards` names the module of each.
import { html, useEffect, useErrorBoundary, useState } from "../html.js";
import { get } from "../api.js";
import { gameName, playerNames } from "../names.js";
import { Problem } from "../problem.js";
import * as generic from "./generic.js";

const BUILT_IN = { doudizhu: "./doudizhu.js", mahjong: "./mahjong.js", othello: "./othello.js", pairing: "./pairing.js" };
const loaded = new Map();
let brought = null;

/** A plugin's module. Whatever it throws, the page shows the generic board and says so. */
function guarded(module) {
  const Board = (props) => {
    const [error] = useErrorBoundary();
    if (!error) return html`<${module.Board} ...${props} />`;
    return html`<${Problem} text=${props.t("The board of this game has failed.")}>${props.t(" ")}${String(error.message ?? error)} <a href="" target="_self">${props.t("Try again.")}</a><//><${generic.Board} ...${props} />`;
  };
  const attempt = (call, otherwise) => {
    try { return call() ?? otherwise; } catch { return otherwise; }
  };
  const describe = (notation, t) => attempt(() => module.describe?.(notation, t), notation);
  const recent = (view) => attempt(() => module.recent?.(view), []);
  return { Board, describe, recent };
}

/** A board that cannot be loaded: the generic one below the reason. The next page that shows the game tries again. */
function failed(game, error) {
  loaded.delete(game);
  return guarded({ Board: () => { throw error; } });
}

async function load(game) {
  brought ??= get("/api/boards").catch(() => { brought = null; loaded.delete(game); return {}; });
  const url = (await brought)[game];
  if (url) return import(url).then((module) => (module.Board ? guarded(module) : failed(game, new Error("board.js exports no Board"))), (error) => failed(game, error));
  return BUILT_IN[game] ? import(BUILT_IN[game]).catch((error) => failed(game, error)) : generic;
}

/** The module of a game: {Board, describe, recent}. */
export function boardOf(game) {
  if (!loaded.has(game)) loaded.set(game, load(game));
  return loaded.get(game);
}

/** The board of a table, once it is loaded, and the names of its players. The page's title has a note, game and players. */
export function useTable(table, onTitle, t, note = "") {
  const [board, setBoard] = useState(null);
  const game = table?.game;
  useEffect(() => { if (game) boardOf(game).then((module) => setBoard(() => module)); }, [game]);
  const names = playerNames(table?.names ?? [], table?.lobby, t);
  const title = game && [gameName(game, t), names.join(t(", "))].filter(Boolean).join(t(": "));
  useEffect(() => { if (title) onTitle(title, note); }, [title, note]);
  return { board, names };
}

// Which board shows which game. A plugin brings its own: `/api/boards` names the module of each.
import * as generic from "./generic.js";

const BUILT_IN = { doudizhu: "./doudizhu.js", mahjong: "./mahjong.js", othello: "./othello.js", pairing: "./pairing.js" };
const loaded = new Map();
let brought = null;

/** Modules that plugins bring: game → URL. */
async function fromPlugins() {
  brought ??= fetch("/api/boards").then((answer) => (answer.ok ? answer.json() : {})).catch(() => ({}));
  return brought;
}

/** The module of a game: {Board, describe}. */
export async function boardOf(game) {
  if (!loaded.has(game)) {
    const url = BUILT_IN[game] ?? (await fromPlugins())[game];
    loaded.set(game, url ? import(url).catch(() => generic) : Promise.resolve(generic));
  }
  return loaded.get(game);
}

// Games, strategies and players by the names that people read.
import { capital } from "./i18n.js";

const FAMILIES = { openspiel: "OpenSpiel" };

/** "othello" → "Othello", "openspiel:go(board_size=9)" → "Go (OpenSpiel, board size=9)" */
export function gameName(game, t) {
  const [, family, name, options] = /^(\w+):(\w+)(?:\((.*)\))?$/.exec(game) ?? [];
  if (!family) return t(game);
  const words = (text) => text.replaceAll("_", " ");
  const more = [FAMILIES[family] ?? family, ...(options ? [words(options)] : [])];
  return t("{text} ({more})", { text: capital(words(name)), more: more.join(t(", ")) });
}

/** Game → a strong strategy that answers soon. */
export const PREFERRED = { doudizhu: "deep-mc", mahjong: "mahjong-ppo", othello: "rule-othello", pairing: "phase-ppo" };

/** Who of these plays, advises and reviews if nobody chooses another. */
export const preferred = (game, known) =>
  known.find((address) => address === PREFERRED[game]) ?? known.find((address) => !["first-legal", "random"].includes(address)) ?? known[0];

/** All addresses of strategies: each by itself, then its levels. */
export const addresses = (strategies) => strategies.flatMap(({ name, levels }) => [name, ...levels.map((level) => `${name}:${level}`)]);

const named = (strategy, alias, t) => (alias ? t("{text} ({more})", { text: strategy, more: alias.replace(/^level-(\d+)$/, `${t("level")} $1`) }) : strategy);

/** "deep-mc:level-2" → "deep-mc (level 2)" */
export function strategyName(address, t) {
  const [strategy, ...alias] = address.split(":");
  return named(strategy, alias.join(":"), t);
}

/** A name that is written from right to left turns nothing around it: it stands between the signs that isolate it. */
const isolated = (name) => (/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/.test(name) ? `\u2068${name}\u2069` : name);

/** The names of the players at the seats of a table.
 *
 * Bots that play against a person have accounts such as "deep-mc.level-2-0df5f44e-1", see opponents.py: it is shown as
 * "deep-mc (level 2)", and two that are the same as "deep-mc 1" and "deep-mc 2".
 */
export function playerNames(players, lobby, t) {
  const bots = players.map((player) => (lobby === "browser" ? /^(.+)-[0-9a-f]{8}-\d+$/.exec(player)?.[1] : undefined));
  return players.map((player, seat) => {
    if (!bots[seat]) return isolated(player);
    const [strategy, ...alias] = bots[seat].split(".");
    const same = bots.flatMap((bot, other) => (bot === bots[seat] ? [other] : []));
    return named(same.length > 1 ? `${strategy} ${same.indexOf(seat) + 1}` : strategy, alias.join("."), t);
  });
}

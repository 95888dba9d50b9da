// Labels in English and Chinese. The key is the English text; what has no entry is shown as it is.
const ZH = {
  tables: "牌桌", play: "出牌", hands: "牌局", models: "模型", training: "训练", health: "状态", "play a game": "对局",
  landlord: "地主", peasant: "农民", cards: "张", pass: "不要", hand: "手牌", "your hand": "你的手牌", "bottom cards": "底牌", bombs: "炸弹",
  bid0: "不叫", bid1: "1 分", bid2: "2 分", bid3: "3 分", call: "叫地主", grab: "抢地主", no: "不叫",
  black: "黑", white: "白", empty: "空", legal: "可下", seat: "座位", points: "分", pool: "牌池", deck: "牌堆", collected: "得牌",
  east: "东", south: "南", west: "西", north: "北", "east wind": "东风", "south wind": "南风", "west wind": "西风", "north wind": "北风",
  "red dragon": "红中", "green dragon": "发财", "white dragon": "白板", characters: "万", bamboos: "条", dots: "筒", flower: "花",
  "hidden tile": "暗牌", discards: "牌河", wall: "牌墙", chi: "吃", peng: "碰", kong: "杠", gang: "杠", win: "和", hu: "和",
  "phase A": "换牌", "phase B": "强配", "phase pairing": "配对", "phase discard1": "弃牌一", "phase discard2": "弃牌二", "phase final": "最终弃牌",
  green: "绿", red: "红", gold: "黄", blue: "蓝", game: "游戏", players: "玩家", strategy: "策略", result: "结果", started: "开始", score: "得分",
  fallbacks: "后备", decisions: "决策", "last move": "上一手", live: "进行中", theme: "主题", light: "浅色", dark: "深色", system: "系统", motion: "动画", language: "语言", "live tables": "进行中的牌桌", "no table is live": "现在没有牌桌", "more": "更多", search: "搜索", "no hand matches": "没有符合条件的牌局",
  "all hands": "全部手牌", "seat view": "座位视角", first: "开头", previous: "上一步", next: "下一步", last: "结尾", value: "价值", chosen: "选择", candidates: "候选动作", "log in": "登录", password: "密码",
};

const saved = (key, fallback) => { try { return localStorage.getItem(key) ?? fallback; } catch { return fallback; } };
let language = saved("language", navigator.language?.startsWith("zh") ? "zh" : "en");

export const t = (text) => (language === "zh" ? ZH[text] ?? text : text);
export const currentLanguage = () => language;

export function setLanguage(next) {
  language = next;
  document.documentElement.lang = next;
  try { localStorage.setItem("language", next); } catch { /* private browsing keeps nothing */ }
}

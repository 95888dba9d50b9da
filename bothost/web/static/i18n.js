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
  "played": "已出",
  "visits": "访问",
  "legal moves": "可选动作",
  "This strategy does not rate its actions.": "这个策略不给动作打分。",
  "fallback": "后备",
  "because late": "超时",
  "because error": "出错",
  "because illegal": "不合规则",
  "because quarantined": "已隔离",
  "value over the hand": "本局价值曲线",
  "move": "手",
  "review": "复盘",
  "review with": "用哪个策略复盘",
  "player": "玩家",
  "everybody": "所有人",
  "The review ended early.": "复盘中断。",
  "Moves that differ are listed without a loss.": "不同的着法只列出，不计损失。",
  "same move": "着法相同",
  "Keys n and p go to the next and the previous mistake.": "按 n 和 p 跳到下一个、上一个失误。",
  "plays the same": "着法相同",
  "would play": "会出",
  "value lost": "损失价值",
  "inaccuracy": "不精确",
  "mistake": "失误",
  "blunder": "大错",
  "moves": "走子",
  "copy link": "复制链接",
  "copied": "已复制",
  "save as file": "存为文件",
  "This hand cannot be replayed.": "这一局无法回放。",
  "No decision of this host at this position.": "这一步不是本机的决策。",
  "Every table at which a bot of this host plays now. Choose one to watch it.": "本机机器人正在打的所有牌桌。点一个观看。",
  "The connection is lost. Trying again.": "连接中断，正在重试。",
  "starts some.": "可以开几桌。",
  "silent": "无动静",
  "The hand is over.": "本局结束。",
  "Replay it.": "回放",
  "What is on this table is not public before the hand ends.": "本局结束前，桌上的内容不公开。",
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

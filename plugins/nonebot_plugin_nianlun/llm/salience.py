"""How much a person would want to keep of a line: weighed by its words and by its company."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
import re

from ..memory.render import one_line
from ..memory.units import count_units
from ..types import Message
from .speech import is_question
from .words import LEADING_ON, topic_words

# Each sign with what it is worth on the day and what it is worth from afar: a time of day is
# soon stale, a new job is not.
_SIGNS: tuple[tuple[re.Pattern[str], float, float], ...] = (
    (
        re.compile(
            "明天|明早|明晚|后天|下周|下个?月|这?周[一二三四五六日天末]|星期[一二三四五六日天]|礼拜"
            "|(?<!大)约|记得|别忘|计划|打算|准备|集合|报名|截止|ddl|开会|作业|报告",
            re.IGNORECASE,
        ),
        1.4,
        0.2,
    ),
    (
        re.compile("答应|说好|保证|说定|定了|我来[^说看]|我请|我负责|交给我|说到做到|一起去"),
        1.6,
        1.2,
    ),
    (
        re.compile(
            "考上|录取|通过了|offer|辞职|离职|入职|转正|升职|涨薪|裁员|面试|毕业|答辩|结婚|领证|求婚|怀孕|生了"
            "|分手|搬家|搬走|搬到|退租|买房|住院|手术|骨折|去世|走丢|领养|收养|捡到|绝育|考研"
            "|上岸|比赛|冠军|得奖|演出|首映|出版|跨年|倒计时|和好",
            re.IGNORECASE,
        ),
        2.0,
        2.6,
    ),
    (
        re.compile(
            "旅行|旅游|出发|机票|车票|高铁|民宿|爬山|登顶|日出|看海|露营|合影|明信片|除夕|年夜饭|拜年|团圆"
            "|生日|礼物|蛋糕"
        ),
        1.4,
        2.0,
    ),
    (
        re.compile(
            "对不起|抱歉|道歉|吵架|吵翻|吵了|原谅|误会|话重|我错|委屈|想哭|难过|舍不得|想家|再见|保重|谢谢你们"
        ),
        1.4,
        2.2,
    ),
    (re.compile("终于|居然|竟然|没想到|第一次|再也|从来|以后|其实|决定"), 1.2, 1.2),
    (
        re.compile("谢谢|恭喜|喜欢|讨厌|想你|陪|担心|害怕|开心|高兴|生气|发烧|生病|感冒|修好|学会"),
        1.0,
        0.8,
    ),
    (
        re.compile(r"\d|[一二两三四五六七八九十](?:点|号|月|块|个|斤|公里)|早上|下午|晚上"),
        0.8,
        0.2,
    ),
    (re.compile("[在去到回][^，。？！ ]{1,6}[站店校园场路楼馆厅山湖海城市县]|地址|地点"), 0.8, 0.6),
)
CUES = tuple(sign for sign, _, _ in _SIGNS)
"""What makes one clause worth more than another."""
_SMALL_TALK = re.compile(
    "(?:真的|好[的吧呀啊耶]?|[嗯哦噢啊行是对有在来早牛草冲顶1]|嗯嗯|哦哦|可以|没有|在的|来了|早安|晚安"
    "|收到|ok|okay|yes|no|笑死|牛逼|厉害|确实|真的假的|不知道|随便|都行|看你们?|yyds|睡了)"
)
_MOODS = (
    ("笑", re.compile(r"哈哈|hhh|233|笑死|笑不活|😂|🤣", re.IGNORECASE)),
    ("贺", re.compile("恭喜|祝贺|生日快乐|太好了|牛啊|可以啊|^(?:真|好|太)?厉害")),
    ("慰", re.compile("加油|抱抱|别难过|别怕|辛苦了|没事的|会好的|摸摸")),
)
_ECHO_LINES = 5
_MARKER = re.compile(r"\[[^\[\]]{0,80}\]")
# What may not stand inside a quote: media markers, quotation marks, the name that an @ calls,
# and anything that could pass for a key mark.
_NOT_WORDS = re.compile(r"\[[^\[\]]{0,80}\]|关键消息|https?://\S+|[\[\]【】「」`]+|~{3,}|@\S+")
_DIRECTIONS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NOISE = re.compile(r"[\W_]+")
_LONGEST = 2_000
"""Characters of a line that are read; what is longer was pasted, not said."""
_BROKEN_OFF = re.compile(r"[，。！？!?；;…\s][^，。！？!?；;…\s]*$")


@dataclass(frozen=True, slots=True)
class Line:
    """A message with the words that may be quoted from it and what they weigh."""

    message: Message
    words: str
    """A verbatim run of the text in one line; empty when it holds no words."""
    score: float
    asks: bool
    echo: str = ""
    """How others took it at once: 笑, 贺 or 慰, or empty."""


def spoken(text: str) -> str:
    """The longest run of plain words in a text, in one line: media markers and links are gaps."""
    line = _DIRECTIONS.sub("", one_line(text[:_LONGEST]))
    start, words = 0, ""
    for gap in [*_NOT_WORDS.finditer(line), None]:
        run = line[start : gap.start() if gap else len(line)]
        if gap and gap[0][0] in "「`":
            # What would go on in quotes says nothing without them.
            run = _BROKEN_OFF.sub("", run)
        words = max(words, run, key=count_units)
        start = gap.end() if gap else start
    return words.strip(" ，,。；;：:、（(")


def moods(messages: Sequence[Message], *, least: int = 1) -> Counter[str]:
    """How many lines laugh (笑), congratulate (贺) or comfort (慰) in so many words.

    Moods of fewer than `least` people do not count.
    """
    found = [
        (mood, message.user_id)
        for message in messages
        for mood, sign in _MOODS
        if sign.search(message.text[:_LONGEST])
    ]
    people = Counter(mood for mood, _ in set(found))
    return Counter(mood for mood, _ in found if people[mood] >= least)


def is_media_only(text: str) -> bool:
    return not _MARKER.sub("", text).strip()


def weigh(text: str, *, afar: bool = False) -> float:
    """What the words alone are worth: about -2 for 哈哈哈, up to about 9.

    `afar`: to somebody who looks back on a month or a year.
    """
    if _is_small_talk(text):
        return -2.0
    units = count_units(text)
    score = min(units, 24) / (12 if afar else 8) - (1.0 if units > 120 else 0.0)
    signs = sum(later if afar else now for sign, now, later in _SIGNS if sign.search(text))
    if not is_question(text):
        return score + signs
    # A question is worth little without its answer; together they are chosen as a pair.
    return score + signs / 2 - 0.8 if afar else score + signs + 0.3


def rank_lines(messages: Sequence[Message], character: str) -> list[Line]:
    """All messages as lines, in their order, each with its weight in this company."""
    replies = Counter(message.reply_to for message in messages if message.reply_to is not None)
    asked = {message.seq for message in messages if is_question(message.text[:_LONGEST])}
    themes = theme_counts(messages)
    seen: set[str] = set()
    lines = []
    for index, message in enumerate(messages):
        words = spoken(message.text)
        bare = _bare(words)
        score = -3.0 if bare in seen or not bare else weigh(words)
        seen.add(bare)
        echo, loudness = _echo(messages, index)
        if score > 0:
            score += min(replies[message.seq], 3) * 0.8 + 0.5 * loudness
            score += 1.2 if message.reply_to in asked else 0.0
            score += 0.8 if character and character in message.text else 0.0
            score -= 2.0 if LEADING_ON.search(words) else 0.0
            score += 0.5 * min(2, sum(themes[word] > 1 for word in topic_words(words)))
        lines.append(Line(message, words, score, is_question(words), echo))
    return lines


def theme_counts(messages: Sequence[Message]) -> Counter[str]:
    """In how many lines each topic word stands."""
    return Counter(word for message in messages for word in topic_words(spoken(message.text)))


def _echo(messages: Sequence[Message], index: int) -> tuple[str, int]:
    """How the next few lines by others took this one, and how many of them did so."""
    taken: list[Message] = []
    for message in messages[index + 1 : index + 1 + _ECHO_LINES]:
        if message.user_id == messages[index].user_id:
            continue
        if not moods([message]) and not _is_small_talk(spoken(message.text)):
            break  # the talk went on
        if message.reply_to in (None, messages[index].seq):
            taken.append(message)
    mood, count = max(moods(taken).items(), key=lambda item: item[1], default=("", 0))
    return (mood if moods(taken, least=2)[mood] else ""), count


def _bare(text: str) -> str:
    return _NOISE.sub("", text).casefold()


def _is_small_talk(text: str) -> bool:
    bare = _bare(text)
    if len(bare) <= 1 or _SMALL_TALK.fullmatch(bare):
        return True
    if bare.isdigit():
        return set(bare) in ({"2", "3"}, {"6"}, {"5"}, {"8"})
    return len(bare) >= 3 and len(set(bare)) <= 2

"""How much a person would want to keep of a line: weighed by its words and by its company."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
import re

from ..memory.render import one_line
from ..memory.units import count_units
from ..types import Message

_SIGNS: tuple[tuple[re.Pattern[str], float], ...] = (
    (
        re.compile(
            "明天|明早|明晚|后天|下周|下个?月|这?周[一二三四五六日天末]|星期[一二三四五六日天]|礼拜|寒假|暑假"
            "|(?<!大)约|一起去|记得|别忘|答应|说好|保证|计划|打算|准备|生日|考试|面试|旅行|旅游|出发|集合|见面"
            "|报名|截止|ddl|开会|作业|论文|报告|答辩|机票|车票|高铁|搬家|毕业|结婚|入职|上线",
            re.IGNORECASE,
        ),
        1.6,
    ),
    (
        re.compile(
            "终于|居然|医院|医生|检查|结果|竟然|第一次|考上|通过了|录取|offer|成功|失败|生病|发烧|住院|去世|分手|吵架"
            "|买了|丢了|找到|回来了|辞职|决定|以后|再也|从来|其实",
            re.IGNORECASE,
        ),
        1.8,
    ),
    (
        re.compile(
            "谢谢|对不起|抱歉|恭喜|喜欢|讨厌|想你|陪|担心|害怕|难过|开心|高兴|生气|委屈|想家"
        ),
        1.0,
    ),
    (
        re.compile(
            r"\d+(?::\d\d)?|[一二两三四五六七八九十]+(?:点|号|月|块|个|斤|公里)|早上|下午|晚上"
        ),
        0.8,
    ),
    (re.compile("[在去到回][^，。？！ ]{1,6}[站店校园场路楼馆厅山湖海城市县]|地址|地点"), 0.8),
    (re.compile("@"), 0.4),
)
_QUESTION = re.compile(
    r"[?？]|[吗呢嘛么][~～。!！…\s]*$|什么时候|为什么|怎么[样办做去]|哪[里儿个天]|几点|几号|多少|谁[会能去来有]"
)
_SMALL_TALK = re.compile(
    "(?:真的|好[的吧呀啊耶]?|[嗯哦噢啊行是对有在来早牛草冲顶1]|嗯嗯|哦哦|可以|没有|在的|来了|早安|晚安"
    "|收到|ok|okay|yes|no|笑死|牛逼|厉害|确实|真的假的|不知道|随便|都行|看你们?|yyds|睡了)"
)
_MOODS = (
    ("在笑", re.compile(r"哈哈|hhh|233|笑死|😂|🤣", re.IGNORECASE)),
    ("在道喜", re.compile("恭喜|祝贺|生日快乐|太好了")),
    ("在打气", re.compile("加油|抱抱|别难过|别怕|辛苦了")),
)
_ECHO_LINES = 5
_MARKER = re.compile(r"\[[^\[\]]{0,80}\]")
# What may not stand inside a quote: media markers, and anything that could pass for a key mark.
_NOT_WORDS = re.compile(r"\[[^\[\]]{0,80}\]|关键消息|https?://\S+|[\[\]【】`]+|~{3,}")
_DIRECTIONS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NOISE = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Line:
    """A message with the words that may be quoted from it and what they weigh."""

    message: Message
    words: str
    """A verbatim run of the text in one line; empty when it holds no words."""
    score: float
    asks: bool


def spoken(text: str) -> str:
    """The longest run of plain words in a text, in one line: media markers and links are gaps."""
    parts = _NOT_WORDS.split(_DIRECTIONS.sub("", one_line(text)))
    return max(parts, key=count_units).strip(" ，,。；;：:、（(")


def is_question(text: str) -> bool:
    return _QUESTION.search(text) is not None


def count_moods(messages: Sequence[Message]) -> dict[str, int]:
    """How many lines laugh, congratulate or encourage in so many words."""
    texts = [message.text for message in messages]
    return {mood: sum(bool(sign.search(text)) for text in texts) for mood, sign in _MOODS}


def is_media_only(text: str) -> bool:
    return not _MARKER.sub("", text).strip()


def weigh(text: str) -> float:
    """What the words alone are worth: about -2 for 哈哈哈, up to about 9."""
    if _is_small_talk(text):
        return -2.0
    units = count_units(text)
    score = min(units, 24) / 8 - (1.0 if units > 120 else 0.0)
    score += sum(weight for sign, weight in _SIGNS if sign.search(text))
    # A question is worth little without its answer; together they are chosen as a pair.
    return score + (0.3 if is_question(text) else 0.0)


def rank_lines(messages: Sequence[Message], character: str) -> list[Line]:
    """All messages as lines, in their order, each with its weight in this company."""
    replies = Counter(message.reply_to for message in messages if message.reply_to is not None)
    asked = {message.seq for message in messages if is_question(message.text)}
    seen: set[str] = set()
    lines = []
    for index, message in enumerate(messages):
        words = spoken(message.text)
        bare = _bare(words)
        score = -3.0 if bare in seen or not bare else weigh(words)
        seen.add(bare)
        if score > 0:
            score += min(replies[message.seq], 3) * 0.8
            score += 0.4 * _reactions(messages, index)
            score += 1.2 if message.reply_to in asked else 0.0
            score += 0.8 if character and character in message.text else 0.0
        lines.append(Line(message, words, score, is_question(words)))
    return lines


def _reactions(messages: Sequence[Message], index: int) -> int:
    """How many of the next few lines by others only react to this one."""
    speaker = messages[index].user_id
    after = messages[index + 1 : index + 1 + _ECHO_LINES]
    moods = [sign for _, sign in _MOODS]
    return sum(
        message.user_id != speaker and any(sign.search(message.text) for sign in moods)
        for message in after
    )


def _bare(text: str) -> str:
    return _NOISE.sub("", text).casefold()


def _is_small_talk(text: str) -> bool:
    bare = _bare(text)
    if len(bare) <= 1 or _SMALL_TALK.fullmatch(bare):
        return True
    if bare.isdigit():
        return set(bare) in ({"2", "3"}, {"6"}, {"5"}, {"8"})
    return len(bare) >= 3 and len(set(bare)) <= 2

"""The writing rules: what a note may look like, whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
import re

from ..errors import NoteRejected
from ..types import KEY_MESSAGE_LIMITS, UNIT_LIMITS, NoteKind
from .keymarks import find_key_messages, normalise_key_marks, strip_key_marks
from .secrets import mask_secrets
from .units import count_units


@dataclass(frozen=True, slots=True)
class _Draft:
    kind: NoteKind
    text: str
    """With canonical references."""
    prose: str
    """Without any reference."""
    key_messages: tuple[int, ...]
    shown: Collection[int]
    units: int


def check_note(
    kind: NoteKind, text: str, shown: Collection[int], units: int | None = None
) -> tuple[str, tuple[int, ...]]:
    """The clean text of a note and the messages that it cites, which must be among `shown`.

    Wrapping that models add (a code fence, quotes around everything) is taken off first, and
    secrets are masked. `units` is the limit where it is not the kind's. Raises NoteRejected, in one
    Chinese sentence for the model, with the first rule that is broken.
    """
    clean = normalise_key_marks(mask_secrets(_unwrap(text)))
    keys, prose = find_key_messages(clean), strip_key_marks(clean).strip()
    draft = _Draft(kind, clean, prose, keys, shown, units or UNIT_LIMITS[kind])
    for check in _CHECKS:
        if complaint := check(draft):
            raise NoteRejected(complaint)
    return clean, draft.key_messages


_BREAKS = re.compile(r"\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_UNFIT = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x9f\ud800-\udfff]")
_FENCE = re.compile(r"```[\w-]*\s(?P<inside>.*)```", re.DOTALL)
_QUOTES = ("“”", "「」", "『』", '""', "''", "``")


def _unwrap(text: str) -> str:
    text = _UNFIT.sub("", _BREAKS.sub("\n", text)).strip()
    if fenced := _FENCE.fullmatch(text):
        text = fenced["inside"].strip()
    for first, last in _QUOTES:
        inside = text[1:-1]
        if text == first + inside + last and first not in inside and last not in inside:
            return inside.strip()
    return text


_LEFTOVER = re.compile(r"</?(?:think|thinking|thought)\b|<\|[a-z_]+\|>", re.IGNORECASE)
_WEB_PAGE = re.compile(r"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_FAILURE = re.compile(
    r"(?:error(?: code)?|http error|api error|请求失败|请求出错|调用失败)\s*[:：]?\s*\d{3}\b"
    r"|[A-Za-z_.]*(?:Error|Exception)\s*:|Traceback \(most recent call last\)"
    r"|HTTP/\d(?:\.\d)?\s+\d{3}\b|[45]\d\d (?:Bad|Internal|Service|Gateway|Too|Unauthor|Forbid)",
    re.IGNORECASE,
)
_JSON = re.compile(r"\{.*\}|\[\s*[{\"].*\]", re.DOTALL)


def not_an_answer(prose: str) -> str | None:
    """What is wrong with a text in which something broke on its way; None when nothing is."""
    if _LEFTOVER.search(prose):
        return "正文里混进了思考过程的标记，请只写正文本身。"
    if _WEB_PAGE.search(prose) or _FAILURE.match(prose):
        return "这是一段报错信息，不是记忆正文，请重新写正文。"
    if _JSON.fullmatch(prose):
        return "正文应当是一段自然的话，不要写成 JSON，请只写正文。"
    return None


def _not_an_answer(draft: _Draft) -> str | None:
    return not_an_answer(draft.prose)


def _empty(draft: _Draft) -> str | None:
    if count_units(draft.prose) == 0:
        return "正文是空的，请写出这段时间里发生的事。"
    return None


_NUMERAL = "一二三四五六七八九十"
_MARKDOWN = (
    ("代码块", re.compile(r"```|^~~~", re.MULTILINE)),
    (
        "标题",
        re.compile(r"^[ \t]*(?:#{1,6}[ \t]|#{2,})|^[ \t]*(?:={3,}|-{3,})[ \t]*$", re.MULTILINE),
    ),
    (
        "列表",
        re.compile(
            r"^[ \t]*(?:[-*+•·●][ \t]+|[（(]?\d{1,2}(?:[.．)）]|、)(?!\d)"
            rf"|[{_NUMERAL}]{{1,3}}、(?![{_NUMERAL}]))",
            re.MULTILINE,
        ),
    ),
)


def _markdown(draft: _Draft) -> str | None:
    for name, pattern in _MARKDOWN:
        if pattern.search(draft.prose):
            return f"正文里有 Markdown {name}，请改成连贯的自然语言段落。"
    return None


# Possessive blanks: a heading of nothing but blanks must not be tried in every division.
_B = r"[ \t\u3000]*+"
_YEAR_DATE = (
    r"\d{4}(?:[-/.]\d{1,2}(?:[-/.]\d{1,2})?"
    rf"|{_B}年(?:{_B}\d{{1,2}}{_B}月(?:{_B}\d{{1,2}}{_B}[日号])?)?)"
)
_DATE_HEADING = re.compile(
    rf"[\[【（(]?{_B}(?:{_YEAR_DATE}|\d{{4}}|\d{{1,2}}月(?:\d{{1,2}}[日号])?)"
    rf"{_B}(?:[（(]?(?:周|星期|礼拜)[一二三四五六日天][)）]?)?{_B}(?:\d{{1,2}}[:：]\d{{2}})?"
    rf"{_B}(?:[\]】）):：\n]|$)"
    rf"|{_YEAR_DATE}[ \t\u3000]"
)
_TITLE = re.compile(
    r"[\[【《]?(?:今日|今天的?|本月的?|今年的?|我的)?(?:日记|月记|年记|活动记录|记忆|回忆|总结|摘要|标题|正文)"
    r"[\]】》]?[ \t]*(?:[:：\n]|$)|[【《][^】》\n]{1,30}[】》][ \t]*\n"
)
_PREAMBLE = re.compile(r"(?:好的?|当然)?[，,。！!～~ ]*(?:以下|下面|这)就?是[^。！？\n]{0,30}[:：]")


def _heading(draft: _Draft) -> str | None:
    if _DATE_HEADING.match(draft.prose):
        return "正文不要以日期开头，日期由系统记录，请去掉它直接写发生的事。"
    if _TITLE.match(draft.prose):
        return "正文不要写标题，请去掉第一行的标题直接写发生的事。"
    if _PREAMBLE.match(draft.prose):
        return "正文前不要加说明，请去掉它直接写发生的事。"
    return None


_TOOL_WORD = re.compile(
    r"update[_-]short[_-]term[_-]memory|get_tasks|add_activity|update_memory|has_next_tasks"
    r"|task_id|(?:source|target)\.(?:kind|memory|date)|\bspeaker\s*=",
    re.IGNORECASE,
)
# A label stands by itself among Chinese words. In an English phrase (the other day), in a longer
# word, in code (self.name) or in quotes it is a word that somebody used.
_LABEL = re.compile(
    r"(?<![\w'’.\-\"“‘「『`])(?<![A-Za-z] )(?:owner|other|self)"
    r"(?![\w'’\"”」』`(\-]|\.\w| [A-Za-z])",
    re.IGNORECASE | re.ASCII,
)


def _system_words(draft: _Draft) -> str | None:
    if found := _TOOL_WORD.search(draft.prose):
        return f"正文里出现了系统用语 {found[0]}，请换成角色自然会说的话。"
    if found := _LABEL.search(draft.prose):
        return f"正文里出现了身份标签 {found[0]}，请换成那个人的名字或平时的称呼。"
    return None


def _broken_reference(draft: _Draft) -> str | None:
    if re.search(r"关键消息\s*[:：]", draft.prose):
        return "关键消息的引用写法不对，请写成（关键消息：[1,3]），里面只放消息编号。"
    return None


def _unseen_messages(draft: _Draft) -> str | None:
    unseen = [number for number in draft.key_messages if number not in draft.shown]
    if not unseen:
        return None
    listed = "、".join(f"#{number}" for number in unseen[:10]) + (" 等" if unseen[10:] else "")
    return f"关键消息 {listed} 不在给出的材料里，请只引用材料中出现过的编号，没有合适的就不引用。"


def _too_many_messages(draft: _Draft) -> str | None:
    count, limit = len(draft.key_messages), KEY_MESSAGE_LIMITS[draft.kind]
    if count > limit:
        return f"引用了 {count} 条关键消息，上限是 {limit} 条，请只留下最重要的。"
    return None


LONGEST_UNIT = 20
"""Characters for each unit of the limit: more than words of any script need with their
punctuation, so that what counts as no unit cannot make a note endless."""


def _too_long(draft: _Draft) -> str | None:
    count, limit = count_units(draft.text), draft.units
    if count > limit:
        return (
            f"正文有 {count} 字，上限是 {limit} 字（一个汉字、一个单词或一个数字算 1 字），"
            "请轻量压缩到上限以内。"
        )
    if len(draft.text) > LONGEST_UNIT * limit:
        return "标点、表情或空白太多，请只留下正文需要的。"
    return None


_CHECKS: tuple[Callable[[_Draft], str | None], ...] = (
    _empty,
    _not_an_answer,
    _markdown,
    _heading,
    _system_words,
    _broken_reference,
    _unseen_messages,
    _too_many_messages,
    _too_long,
)

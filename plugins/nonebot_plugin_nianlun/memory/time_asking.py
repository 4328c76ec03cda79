"""Whether a sentence with a word of time asks about that time, or only talks.

A window narrows what is recalled, so 我昨天买了猫粮 must not open one: it tells, it does not ask.

- A sentence *asks* when it has a question word or mark, or a word of memory (记得, 聊, 说过). About
  a time that is not over (今天, 这周) only a question about what has been counts (今天吃了什么, not
  今天吃什么); and about one whose year or week nobody named, none about plans (周五有什么安排).
- A clause that only tells of a time that is not over asks for none (今天见到他了，他欠谁一顿).
- A sentence without either *names* a time to look in (昨晚 火锅) unless it has the marks of a
  statement. Of a time that is not over only the bare words, or 今天的…, do; today's weather
  never does.
"""

from __future__ import annotations

import re

_SENTENCE_END = re.compile(r"[。！？!?；;\n]|\.(?=\s|$)")
# Where the next part of a sentence may ask for something else. A tilde or dots end one in a chat.
_CLAUSE_END = re.compile(r"[,，:：~～…。！？!?；;\n]|[.](?=\s|$)|[ \u3000](?=[\u4e00-\u9fff])")
_RECALLING = re.compile(
    r"记得|回忆|回顾|总结|聊(?!了)|[说讲谈提](?:过|的|起|到)|告诉|[问曾]过?|发生|记录|日记|"
    r"(?<![为除])了(?!解)|(?<![路经通超])过(?![来年分期敏程])|"
    r"\b(?:remind|remember|recall|summari[sz]e|recap|mention\w*|said|told|talk\w*|discuss\w*|"
    r"chat\w*|happened|did|was|were|had)\b",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"[?？吗呢谁哪啥何咋]|什么|(?<![那这要])么|几(?![乎分])|怎|多少|多久|是不是|有没有|对不对|"
    r"记得|回忆|回顾|总结|聊(?![了得天])|[说讲谈提](?:过|的|起|到)|告诉|问过|问的|发生|查|搜|找|翻|看看|"
    r"记录|日记|"
    r"\b(?:wh(?:at|en|ere|o|om|ose|ich|y)|how|remind|remember|recall|summari[sz]e|recap|list|"
    r"show|find|search|mention\w*|said|say|told|tell|talk\w*|discuss\w*|chat\w*|happened)\b|"
    r"^\W*(?:(?:and|so|but)\s+)?(?:did|do|does|is|are|was|were|have|has|had|can|could|any)\b",
    re.IGNORECASE,
)
_PLANNING = re.compile(
    r"安排|打算|要[去做干]|有空|有课|\b(?:will|shall|going\s+to|plans?|free)\b", re.IGNORECASE
)
_TELLING = re.compile(
    r"(?<![为除])了(?!解)|[!！~]|[吧啊呀啦哈哦噢耶嘛][。.…]*\s*$|很|真(?![心人相题])|太(?![太阳极空])|"
    r"[要想](?=[去来吃买做睡看])|打算|准备|生日是|是.{0,3}生日|出生|见[。~\s]*$|好[热冷累困忙烦开难无饿饱疼晒闷]|"
    r"(?:^|[,;]|\b(?:and|but|so))\W*(?:i|we|he|she|they|it|you)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"[我咱]")
_SAID_THEN = re.compile(
    r"(?<![想要])(?:[说讲谈提聊问写发]|告诉我?)(?:过|起|到|了|的)|^\W*about\b", re.IGNORECASE
)
_WEATHER = re.compile(r"\s*的?天气|(?:['’]s)?\s+weather", re.IGNORECASE)
_FILLING = re.compile(
    r"不是|[是的和在到从那\W]+|\b(?:in|on|at|during|since|from|between|the|about)\b", re.IGNORECASE
)
_GOES_ON = re.compile(r"的|\s|['’]s\b")


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the sentence that holds `text[start:end]` begins and ends, its mark included."""
    return _between(_SENTENCE_END, text, start, end)


def clause_around(text: str, start: int, end: int) -> tuple[int, int]:
    """As `sentence_around`, of the part of the sentence that it stands in."""
    return _between(_CLAUSE_END, text, start, end)


def _between(ends: re.Pattern[str], text: str, start: int, end: int) -> tuple[int, int]:
    begin, finish = 0, len(text)
    for mark in ends.finditer(text):
        if mark.end() <= start:
            begin = mark.end()
        elif mark.start() >= end:
            finish = mark.end()
            break
    return begin, finish


def is_asking(rest: str) -> bool:
    """Whether a sentence, its words of time taken out, asks for something."""
    return _ASKING.search(rest) is not None


def is_recalling(rest: str) -> bool:
    """Whether such a sentence is about what has been."""
    return _RECALLING.search(rest) is not None


def is_planning(rest: str) -> bool:
    """Whether such a sentence is about what is to come."""
    return _PLANNING.search(rest) is not None


def is_naming(rest: str, following: str, *, over: bool) -> bool:
    """Whether a sentence that does not ask names a time to look in, rather than tells of it.

    `rest` is the sentence without its words of time, `following` what stands behind them; `over`
    says that the time is.
    """
    if not _FILLING.sub("", rest):
        return True
    return not is_telling(rest) and (over or _GOES_ON.match(following) is not None)


def is_telling(rest: str) -> bool:
    """Whether what is left without words of time has the marks of a statement."""
    telling = _TELLING.search(rest) or (_FIRST_PERSON.search(rest) and "的" not in rest)
    return bool(telling)


def is_said_then(between: str) -> bool:
    """Whether of two times what was said at the first is asked about: 今天你说的上周的事.

    `between` stands between them. Where it does not say so, the first is when somebody asks: 今天你
    还记得上周的事吗.
    """
    return _SAID_THEN.search(between) is not None


def is_weather(following: str) -> bool:
    return _WEATHER.match(following) is not None

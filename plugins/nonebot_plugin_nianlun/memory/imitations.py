"""What models imitate from their prompt, and no person would write in a chat.

Only whole marks of ours are taken, each in the shapes that models give it; words are kept. A
number of one digit may be anybody's (`#1`, `（#1）`), so it is a mark only beside others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
import re
from typing import NamedTuple

from .keymarks import strip_key_marks
from .unseen import without_variants

# Quantifiers are possessive or bounded: on hostile text every attempt ends soon.
_FRONT = r"[>*_`\s-]{0,8}+"
_OPEN, _CLOSE = r"[\[【（(<*_`>\s-]{0,8}+", r"[\]】）)*_`\s]{0,8}+"
_NUMBER = r"[#＃]\s?\d{1,19}"
_DATE = r"(?:(?:\d{4}-)?\d{1,2}-\d{1,2}\s{1,3})?"
_CLOCK = rf"{_DATE}\d{{1,2}}[:：]\d{{2}}(?:[:：]\d{{2}})?"
_ASIDE = r"(?:[（(][^（()）\n]{1,40}[)）])"
"""Behind a name: `（回复 #12）`, `（尾号1234）`, `（其他功能）`, or the clock."""
_HEADED = re.compile(
    rf"^{_OPEN}{_NUMBER}{_CLOSE}{_OPEN}{_CLOCK}{_CLOSE}"
    rf"(?:{_OPEN}(?P<name>[^\n:：\[\]【】（()）#]{{1,60}}){_ASIDE}{{0,3}}"
    rf"(?:{_CLOSE}[:：](?:\*\*(?=\s))?|[\]】])\s*|\s*$)"
)
"""What stands before each line of the talk."""
_NUMBERED = re.compile(rf"^{_OPEN}[#＃]\s?\d{{2,19}}{_CLOSE}{_OPEN}{_CLOCK}{_CLOSE}(?=\S|$)")
_ITEM = re.compile(
    rf"^\s*-\s+(?:[&＆]\d{{1,19}}\s+{_CLOCK}\s*前后[:：]\s*"
    r"|\[[a-z_]{1,40}:[^\[\]\n]{1,80}\]\s?"
    r"|在[^\n]{1,80}?（那里的 [^\n（）]{1,90}）\s*)"
)
_MOST_HEADS = 8
_SPOKEN = ("我", "me", "assistant", "助手")
_TALK = re.compile(r"^\s*[^\W\d]{1,8}\s*[:：]")
_REPLY_TO = re.compile(rf"^{_OPEN}回复\s*[#＃]\d{{1,19}}(?:[\]】）)]|\s*[:：])\s*")
_DAY = re.compile(
    r"^\W{0,6}[—–=*-]{2,8}\s*(?:\d{4}-)?\d{1,2}-\d{1,2}\s*(?:周.)?\s*[—–=*-]{2,8}\W{0,6}$"
)
_NOW = re.compile(
    rf"^{_FRONT}【(?:此刻】{_CLOSE}(?:{_CLOCK}(?:\s*[（(]?周.[)）]?)?)?|这句话让你想起】)\s*"
)
_HEADS = re.compile(
    r"^[\s#*]{0,6}(?:【(?:这句话让你想起|答应过的事|这些年|最近几个月|最近几天|还没写进日记的事)】"
    r"(?:（是记忆[^\n]{0,40})?[\s*:：]{0,4}$|你记得的事（是记忆|（以下是记忆里的资料|（下面是刚才查到)"
)
_BELOW = re.compile(
    r"^\s*(?:$|-\s+(?:\d{4}\b|\d\d-\d\d |[#＃&＆]\d|\[[a-z_]+:|在[^\n]{1,80}（那里的 "
    r"|[^\n]*到期）$))"
)
_REMINDED = re.compile(r"^\s*今天这个日子你记得：")
_ALONE = re.compile(
    r"^\s*(?:\[(?:空消息|已撤回|图片|动画表情|聊天记录)(?:：[^\[\]\n]{0,80})?\]\s*)+$"
)
_FACE = re.compile(r"\[表情[:：][^\[\]\n]{1,20}\]")
_REFERENCES = re.compile(
    r"[（(\[【](?:[#＃&＆]\d{1,19}[\s、，,]{0,3}){2,20}[)）\]】]"
    r"|[（(\[【](?:(?:见|消息|活动)\s?)?(?:[&＆]\d{1,19}|[#＃]\d{2,19})[)）\]】]"
    r"|（那里的 [#&\[\d][^（）\n]{0,90}）"
    # Not in `a=1&2`, `Q&3` or `&#3;`.
    r"|(?<![\x21-\x7e])[&＆]\d{1,19}(?![A-Za-z0-9_;=%])[ \t]?"
)
_TAIL = re.compile(r"(?<=[^\s卡号机户款行码牌])(?:[（(]尾号\s?\d{1,20}[)）]|（无号码\d{1,5}）)")
_CITED = re.compile(r"[\s，。]?[\[【]?关键消息[:：]\s?[\[［【]?[\d\s,，、#]{1,200}[\]］】]{1,2}")
_CODE = re.compile(
    r"^[ \t]*```[ \t]*(?!(?:te?xt|plain\w*|markdown|md|chat)\b)[a-z][\w+#.-]{0,30}[ \t]*\r?\n"
    r"(?:(?![ \t]*```\s*?$).*+\n)*+(?P<end>[ \t]*```[ \t\r]*$)?",
    re.IGNORECASE | re.MULTILINE,
)
"""Code of a named language is nobody's talk. Without a name it may be all that was said."""
_HELD = re.compile("\x00(\\d+)\x00")
_TOKENS = re.compile(
    r"<[|｜][^<>|｜\n]{1,40}[|｜]>(?:(?:assistant|user|system)(?:\s*\n|(?=<[|｜])))?"
)
_INNER = "memory|memories|context|history|system|recall|tool_call|tool_response|tool_result"
_OUTER = "reply|response|answer|output|assistant|message"
_BLOCKS = re.compile(
    rf"^[ \t]*<({_INNER})\b[^<>\n]{{0,200}}>(?:[^<]|<(?!/?\1\b))*+</\1\s*>[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_TAGS = re.compile(
    rf"^[ \t]*</?(?:{_INNER}|{_OUTER}|user)\b[^<>\n]{{0,200}}>[ \t]*|</(?:{_OUTER})>[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)


class _Line(NamedTuple):
    text: str
    other: str | None
    """Into whose mouth it is put."""
    headed: bool


def clean_reply(text: str, me: str = "我") -> str:
    """Take off what models imitate from the prompt: ids, times, speaker prefixes, key marks,
    headings with what stands below them, and the lines that they make others say.

    `me` is what the bot's own lines are called there. Empty when nothing else was said. Marks
    are seen through characters that show nothing; these stay where there is none to take off.
    """
    seen = without_variants(text)
    cleaned = _without_marks(seen, without_variants(me))
    return text.replace("\x00", "").strip() if cleaned and cleaned == seen.strip() else cleaned


def _without_marks(text: str, me: str) -> str:
    code: list[str] = []

    def hold(block: re.Match[str]) -> str:
        if block["end"] is None:
            return block[0]
        code.append(block[0])
        return f"\x00{len(code) - 1}\x00"

    text = _BLOCKS.sub("", _TOKENS.sub("", _CODE.sub(hold, text)))
    text = _CITED.sub("", strip_key_marks(_TAGS.sub("", text))).strip()
    own = list(_own(list(_said(text.splitlines(), me))))
    if _is_speech(own):
        own = [_own_prefix("").sub("", line) for line in own]
    cleaned = "\n".join(own)
    cleaned = _TAIL.sub("", _REFERENCES.sub("", _FACE.sub("", cleaned)))
    return _HELD.sub(lambda held: code[int(held[1])], cleaned).strip()


def _said(lines: list[str], me: str) -> Iterator[_Line]:
    """Each line without what stands before it."""
    below_heading, other = False, None
    for given in lines:
        if _HEADS.match(given):
            below_heading, other = True, None
            continue
        if below_heading and _BELOW.match(given):
            continue
        below_heading = False
        if _DAY.match(given) or _ALONE.match(given) or _REMINDED.match(given):
            continue
        line, speaker = _without_heads(given, me)
        if line != given:
            other = None if speaker in (None, me, *_SPOKEN) else speaker
        elif not given.startswith("    "):
            other = None
        if line.strip() or not given.strip():
            yield _Line(line, other, line != given)


def _own(said: list[_Line]) -> Iterator[str]:
    """What is said oneself. Lines of others stay only where they are quoted, as people quote."""
    others = {line.other for line in said if line.other is not None}
    nothing = not any(line.text.strip() for line in said if line.other is None)
    before, quotes = "", nothing and len(others) > 1
    for line in said:
        if line.other is None:
            before = line.text if line.text.strip() else before
            yield line.text
        elif quotes or before.rstrip().endswith((":", "：")):
            yield f"{line.other}：{line.text.strip()}" if line.headed else line.text.strip()
        elif nothing:
            yield line.text  # it has only taken a wrong name


def _without_heads(line: str, me: str) -> tuple[str, str | None]:
    """The line without its heads, and the name in the last of them."""
    speaker = None
    for _ in range(_MOST_HEADS):
        found = _HEADED.match(line)
        if found is not None:
            speaker = (found["name"] or me).strip()
        else:
            patterns = (_ITEM, _own_prefix(me), _REPLY_TO, _NOW, _NUMBERED)
            found = next((hit for pattern in patterns if (hit := pattern.match(line))), None)
        if found is None or not found.end():
            break
        line = line[found.end() :]
    return line, speaker


@lru_cache(maxsize=64)
def _own_prefix(me: str) -> re.Pattern[str]:
    """A name of the bot's before what it says; without `me` any of the names that others have."""
    names = re.escape(me) if me else "|".join(_SPOKEN)
    before = rf"(?:{_NUMBER}{_CLOSE})?{_OPEN}(?:{_CLOCK}{_CLOSE})?{_OPEN}"
    return re.compile(
        rf"^{before}(?:{names}){_ASIDE}{{0,3}}{_CLOSE}[:：](?:\*\*(?=\s|$))?\s*"
        rf"|^{_OPEN}(?:{_NUMBER}{_CLOSE})?{_OPEN}{_CLOCK}{_CLOSE}(?:{names})\s*$"
        + (rf"|^{_FRONT}[\[【]{names}[\]】]\s*" if me else ""),
        re.IGNORECASE,
    )


def _is_speech(lines: list[str]) -> bool:
    """Whether `我：` in front is a prefix, and not a talk between several that is told."""
    spoken = _own_prefix("")
    begun = next((line for line in lines if line.strip()), "")
    return bool(spoken.match(begun)) and not any(
        _TALK.match(line) for line in lines if not spoken.match(line)
    )

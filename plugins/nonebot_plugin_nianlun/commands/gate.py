"""Which messages are commands: decided on their text alone, before anything costs time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
import re
from typing import TYPE_CHECKING

from nonebot import get_bots
from nonebot.adapters.onebot.v11 import Message, MessageEvent, MessageSegment
from nonebot.permission import Permission

from ..memory.periods import names_time
from ..types import Segment

if TYPE_CHECKING:
    from nonebot.adapters import Bot, Event
    from nonebot.typing import T_DependencyCache

WORD = "记忆"
ALIAS = "nianlun"
VERBS = frozenset({
    "帮助", "状态", "今天", "昨天", "前天", "日期", "去年今天", "预览", "用量", "版本", "对比",
    "谁", "说过", "搜索", "原文", "词条", "年轮", "为什么", "改", "还原", "重写", "删", "记住",
    "忘掉", "整理", "核对", "暂停", "继续", "静音", "开口", "人设", "限额", "公开", "不公开",
    "连通", "断开", "清空", "导出", "导入", "我的记忆", "别记我", "可以记我", "别记这段", "忘记我",
})  # fmt: skip
"""Every verb of the tree, known before there is one: what is a command is decided first."""
HELP_WORDS = frozenset({"help", "-h", "--help", "?", "？"})
"""How else people ask for help, in lower case."""
SEPARATORS = " \t\r\n\u3000\u00a0"
"""What may stand between the parts of a command; phones type the full-width space."""
_FIRST_WORD = re.compile(rf"[^{SEPARATORS}]+")


def is_command(text: str, starts: Collection[str]) -> bool:
    """Whether `text` begins with a command start and the word, and the word ends there or a verb,
    a call for help or a time follows at once: 记忆上周五 is one, 记忆力 is none."""
    return behind_head(text, starts) is not None


def behind_head(text: str, starts: Collection[str]) -> str | None:
    """What stands behind `/记忆` in a command; None where `text` is none."""
    text = text.lstrip(SEPARATORS)
    if text.startswith("／") and "/" in starts:
        text = f"/{text[1:]}"  # as Chinese input methods type it
    for start in starts:
        for word in (WORD, ALIAS):
            end = len(start) + len(word)
            if not text.startswith(start) or text[len(start) : end].lower() != word:
                continue
            body = text[end:]
            glued = _FIRST_WORD.match(body)
            if glued is None or _is_asked_for(glued[0]):
                return body
    return None


def _is_asked_for(word: str) -> bool:
    return word in VERBS or word.lower() in HELP_WORDS or names_time(word)


def has_command(message: Message, self_id: str, starts: Collection[str]) -> bool:
    """Whether `message`, as the adapter hands it on, is a command to the bot `self_id`.

    The adapter has already taken off the bot's nickname, so this wants `event.message`.
    """
    body = _body_start(message, self_id)
    return (
        body < len(message)
        and message[body].type == "text"
        and is_command(_text_of(message[body]), starts)
    )


def command_body(message: Message, self_id: str) -> Message:
    """The command without the quotation and the @ of the bot around it."""
    body = message[_body_start(message, self_id) :]
    while body and (_is_at(body[-1], self_id) or _is_blank(body[-1])):
        body.pop()
    return body


class CommandWords:
    """Tells from a message as it was sent whether it is a command to the bot.

    The gate sees messages without the nickname, which the adapter takes off; here it still
    stands before the command.
    """

    __slots__ = ("_nickname", "_starts")

    def __init__(self, starts: Collection[str], nicknames: Collection[str]) -> None:
        self._starts = frozenset(starts)
        names = "|".join(re.escape(name) for name in nicknames)
        # The same pattern by which the adapter finds a nickname.
        self._nickname = re.compile(rf"(?:{names})[\s,，]*", re.IGNORECASE) if names else None

    def in_segments(self, segments: Sequence[Segment], self_id: str) -> bool:
        quoted = False
        for segment in segments:
            kind, data = segment["type"], segment["data"]
            if kind == "reply":
                quoted = True
            elif kind == "text":
                text = str(data.get("text", ""))
                if text.strip(SEPARATORS):
                    return self._is_command(text)
            elif kind != "at" or not (quoted or str(data.get("qq")) == self_id):
                return False
        return False

    def _is_command(self, text: str) -> bool:
        if WORD not in text and ALIAS not in text.lower():
            return False
        text = text.lstrip(SEPARATORS)
        if self._nickname is not None and (name := self._nickname.match(text)):
            text = text[name.end() :]
        return is_command(text, self._starts)


class MessageGate(Permission):
    """Lets some messages of others through and nothing else, the bot's own lines least of all.

    A permission is checked before the rule, and this one overrides the call itself: NoneBot's
    injection of parameters alone would cost every ordinary message two tasks a parameter.
    It has to be assigned to a finished matcher, since a constructor would wrap it away.
    """

    __slots__ = ("starts",)

    def __init__(self, starts: Collection[str]) -> None:
        super().__init__()
        self.starts = frozenset(starts)

    async def __call__(
        self,
        bot: Bot,
        event: Event,
        stack: AsyncExitStack | None = None,
        dependency_cache: T_DependencyCache | None = None,
    ) -> bool:
        return (
            isinstance(event, MessageEvent)
            # Two accounts of one bot in one group would answer each other for ever.
            and str(event.user_id) not in get_bots()
            and event.user_id != event.self_id
            and self.opens_for(event)
        )

    def opens_for(self, event: MessageEvent) -> bool:
        raise NotImplementedError


class CommandGate(MessageGate):
    """Lets commands through."""

    __slots__ = ()

    def opens_for(self, event: MessageEvent) -> bool:
        return has_command(event.message, str(event.self_id), self.starts)


def _body_start(message: Message, self_id: str) -> int:
    """Index of the first segment that is more than an address.

    Clients put an @ of the quoted person behind a quotation; the adapter leaves both in place
    when it cannot fetch the quoted message.
    """
    quoted = False
    for index, segment in enumerate(message):
        if segment.type == "reply":
            quoted = True
        elif not (
            _is_at(segment, self_id) or (quoted and segment.type == "at") or _is_blank(segment)
        ):
            return index
    return len(message)


def _is_at(segment: MessageSegment, self_id: str) -> bool:
    return segment.type == "at" and str(segment.data.get("qq")) == self_id


def _is_blank(segment: MessageSegment) -> bool:
    return segment.type == "text" and not _text_of(segment).strip(SEPARATORS)


def _text_of(segment: MessageSegment) -> str:
    return str(segment.data.get("text", ""))

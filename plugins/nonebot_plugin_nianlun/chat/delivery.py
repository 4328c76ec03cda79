"""Sending text to where an event came from.

Text goes out as text segments only. A bare `str` in an API call would be read for CQ codes by
the other side, so that a member could make the bot @ everybody or open a file of its host.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
import re
from typing import Literal, TypeAlias

from nonebot import logger
from nonebot.adapters.onebot.v11 import (
    ActionFailed,
    ApiNotAvailable,
    Bot,
    Message,
    MessageEvent,
    MessageSegment,
)

Purpose: TypeAlias = Literal["reply", "command", "opted_out"]
"""`command`: what the program says, the answer to a command or a notice of its own, of which no
memory is made. `opted_out`: a reply to somebody whose words, and so perhaps this text, are not
recorded."""

LONG_CHARACTERS = 300
LONG_LINES = 8
CHUNK_CHARACTERS = 1000
MOST_NODES = 90
"""QQ takes a bundle of a hundred."""
MOST_PLAIN = 8
"""More messages in a row would flood the chat, and have the account muted."""
_SENTENCE_END = re.compile(r"[。！？!?…；;]+[”’」』）)]*")

sending: ContextVar[Purpose | None] = ContextVar("sending", default=None)
"""What this plugin is sending right now; None while somebody else's code sends."""


async def send_text(
    bot: Bot,
    event: MessageEvent,
    text: str,
    *,
    purpose: Purpose,
    quote: bool = False,
    privately: bool = False,
) -> None:
    """Send `text` to the chat of `event`, under a quotation of it with `quote`; raises the
    adapter's errors."""
    said = MessageSegment.text(text)
    message = MessageSegment.reply(event.message_id) + said if quote else said
    await send_segment(bot, event, message, purpose=purpose, privately=privately)


async def send_segment(
    bot: Bot,
    event: MessageEvent,
    message: Message | MessageSegment,
    *,
    purpose: Purpose,
    privately: bool = False,
) -> None:
    """Send `message` to the chat of `event`, or with `privately` to its sender alone; raises the
    adapter's errors."""
    # With both numbers in the call it is a talk that comes from the group, for those who are no
    # friends of the bot's account.
    place = {"message_type": "private"} if privately else {}
    with _marked(purpose):
        await bot.send(event, message, **place)


async def send_long(
    bot: Bot,
    event: MessageEvent,
    title: str,
    text: str,
    *,
    character: str,
    purpose: Purpose,
    privately: bool = False,
) -> None:
    """Send a text of any length under its title: a long one as a bundle that folds away.

    Where the other side knows no bundles or refuses this one, it goes out as plain messages. What
    is too long for either is cut off, with a line that says so.
    """
    whole = f"{title}\n{text}" if title else text
    if len(whole) <= LONG_CHARACTERS and whole.count("\n") < LONG_LINES:
        await send_text(bot, event, whole, purpose=purpose, privately=privately)
        return
    chunks = split_text(whole, CHUNK_CHARACTERS)
    try:
        with _marked(purpose):
            await _send_forward(bot, event, _first(chunks, MOST_NODES), character, privately)
    except (ActionFailed, ApiNotAvailable) as error:
        logger.info(f"合并转发没有发出去，改发普通消息：{error!r}")
        for chunk in _first(chunks, MOST_PLAIN):
            await send_text(bot, event, chunk, purpose=purpose, privately=privately)


def _first(chunks: list[str], most: int) -> list[str]:
    if len(chunks) <= most:
        return chunks
    return [*chunks[: most - 1], f"……太长了，后面还有 {len(chunks) - most + 1} 段没有发出来。"]


def split_text(text: str, limit: int) -> list[str]:
    """Cut `text` into pieces of at most `limit` characters, at the end of a line where one ends
    in the second half of a piece, else of a sentence, else hard. Only white space is lost."""
    pieces = []
    rest = text.strip()
    while len(rest) > limit:
        end = _cut(rest, limit)
        pieces.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return [*pieces, rest] if rest else pieces


def _cut(text: str, limit: int) -> int:
    line_end = text.rfind("\n", limit // 2, limit + 1)
    if line_end > 0:
        return line_end
    ends = [match.end() for match in _SENTENCE_END.finditer(text, limit // 2, limit)]
    return ends[-1] if ends else limit


async def _send_forward(
    bot: Bot, event: MessageEvent, chunks: list[str], character: str, privately: bool
) -> None:
    nodes = [
        MessageSegment.node_custom(int(bot.self_id), character, Message(MessageSegment.text(chunk)))
        for chunk in chunks
    ]
    group_id = getattr(event, "group_id", None)
    if event.message_type == "group" and group_id is not None and not privately:
        await bot.call_api("send_group_forward_msg", group_id=group_id, messages=nodes)
    else:
        await bot.call_api("send_private_forward_msg", user_id=event.user_id, messages=nodes)


@contextmanager
def _marked(purpose: Purpose) -> Iterator[None]:
    token = sending.set(purpose)
    try:
        yield
    finally:
        sending.reset(token)

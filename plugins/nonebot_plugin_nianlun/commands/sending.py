"""Brings an answer to whoever asked: text, picture, file; in the chat or in private."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable
from pathlib import Path

from nonebot import logger
from nonebot.adapters.onebot.v11 import (
    ActionFailed,
    ApiNotAvailable,
    Bot,
    MessageEvent,
    MessageSegment,
    NetworkError,
)

from ..capture.outgoing import ambiguous
from ..chat.delivery import LONG_CHARACTERS, send_long, send_segment, send_text
from .command import Answer

_NO_PRIVATE_TALK = "私聊发不到你那里：请加我好友，或在私聊里发这条指令。"
_NO_PICTURE = "图片没有发出去。"
_NO_FILE = "文件没有发出去，对方的 OneBot 一端不接收。"


async def deliver(bot: Bot, event: MessageEvent, answer: Answer, *, character: str) -> None:
    """Send an answer to the command of `event`; what cannot be sent is told in one line, once.

    A long text goes out as a bundle that `character` signs.
    """
    privately = answer.privately and event.message_type == "group"
    try:
        await _send(bot, event, answer, character, privately)
    except (ActionFailed, ApiNotAvailable) as error:
        logger.warning(f"指令的回答没有发出去：{error!r}")
        if privately:
            await _quietly(send_text(bot, event, _NO_PRIVATE_TALK, purpose="command"))
    except NetworkError as error:
        # It may have arrived, so nothing is sent once more.
        logger.warning(f"不知道指令的回答有没有发出去：{error!r}")
    finally:
        if answer.file is not None:
            await asyncio.to_thread(answer.file.unlink, missing_ok=True)


async def _send(
    bot: Bot, event: MessageEvent, answer: Answer, character: str, privately: bool
) -> None:
    text = answer.text
    if answer.picture is not None:
        picture = MessageSegment.image(answer.picture)
        try:
            await send_segment(bot, event, picture, purpose="command", privately=privately)
        except (ActionFailed, ApiNotAvailable) as error:
            if privately and not text:
                raise
            logger.info(f"图片没有发出去：{error!r}")
            text = text or _NO_PICTURE
    if answer.quotes is not None and await _quoted(bot, event, text, answer.quotes, privately):
        text = ""
    elif text or answer.title:
        await send_long(
            bot,
            event,
            answer.title,
            text,
            character=character,
            purpose="command",
            privately=privately,
        )
    if answer.file is not None and not await _upload(bot, event, answer.file, privately):
        await send_text(bot, event, _NO_FILE, purpose="command", privately=privately)


async def _quoted(bot: Bot, event: MessageEvent, text: str, quotes: str, privately: bool) -> bool:
    """Whether the text went out under the message that it quotes: the other side may not know
    that one any more, and a long text folds away better without."""
    if privately or len(text) > LONG_CHARACTERS or not quotes.lstrip("-").isdecimal():
        return False
    message = MessageSegment.reply(int(quotes)) + MessageSegment.text(text)
    try:
        await send_segment(bot, event, message, purpose="command")
    except ActionFailed as error:
        if ambiguous(error):
            raise
        logger.info(f"没有引用成 {quotes}：{error!r}")
        return False
    return True


async def _upload(bot: Bot, event: MessageEvent, file: Path, privately: bool) -> bool:
    """Whether the other side took the file: its content first, for it may run elsewhere and see
    no file of ours, and the path where it takes none."""
    content = await asyncio.to_thread(file.read_bytes)
    file = await asyncio.to_thread(file.resolve)
    group_id = getattr(event, "group_id", None)
    if event.message_type == "group" and not privately:
        api, place = "upload_group_file", {"group_id": group_id}
    else:
        api, place = "upload_private_file", {"user_id": event.user_id}
    for way in (f"base64://{b64encode(content).decode()}", str(file)):
        try:
            await bot.call_api(api, **place, file=way, name=file.name)
        except (ActionFailed, ApiNotAvailable) as error:
            logger.info(f"文件没有发出去：{error!r}")
        else:
            return True
    return False


async def _quietly(sending: Awaitable[None]) -> None:
    try:
        await sending
    except (ActionFailed, ApiNotAvailable, NetworkError) as error:
        logger.warning(f"这也没有发出去：{error!r}")

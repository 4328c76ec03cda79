"""Files that people send: what is told of them, and getting one from the OneBot end.

Some ends tell of a file in a message, some in a notice, some in both, under other names for the
same; where somebody is not recorded, neither is kept anywhere but here, for a while.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
import binascii
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from nonebot import logger
from nonebot.adapters.onebot.v11 import ActionFailed, ApiNotAvailable, Bot, NetworkError

from ..file_sizes import file_size
from ..types import ChatKey
from .downloading import NotFetched, download
from .events import incoming, uploaded, withdrawal
from .other_side import peer_address

LARGEST = 64 << 20
"""Bytes of a file that is taken."""
_SECONDS = 120.0
_HERE = frozenset({"127.0.0.1", "::1"})
_KEPT = 200
"""Files that are remembered, of all chats together."""
_TWINS = timedelta(minutes=1)
"""A message and a notice of the same file come this close together."""
_NAMES = ("name", "file_name", "file")
_SIZES = ("file_size", "size")
_IDS = ("file_id", "id", "file_uuid")


@dataclass(frozen=True, slots=True)
class SentFile:
    """What was told of a file."""

    chat: ChatKey
    user_id: str
    at: datetime
    data: Mapping[str, Any]
    """As the platform has it."""
    message_id: str | None = None
    """None where a notice alone told of it."""
    told_twice: bool = False


def name_of(data: Mapping[str, Any]) -> str:
    """What a file is called; empty where nobody told."""
    names = (data.get(key) for key in _NAMES)
    told = next((one for one in names if isinstance(one, str) and one), "")
    return "" if "://" in told else told.replace("\\", "/").rpartition("/")[2]


def size_of(data: Mapping[str, Any]) -> int | None:
    """Its size in bytes; None where nobody told."""
    told = (str(data.get(key, "")) for key in _SIZES)
    return next((int(one) for one in told if one.isdecimal() and len(one) < 16), None)


class SentFiles:
    """The newest files that were sent anywhere, and who waits for one."""

    def __init__(self) -> None:
        self._files: deque[SentFile] = deque(maxlen=_KEPT)
        self._awaited: dict[tuple[ChatKey, str], tuple[datetime, Callable[[], None]]] = {}

    def hear(self, event: object, self_id: str, now: datetime) -> None:
        """Take in an event as it arrived: a message, a notice, or that one was taken back."""
        is_notice = getattr(event, "post_type", None) == "notice"
        if is_notice and (taken := withdrawal(event, self_id=self_id, now=now)) is not None:
            gone = (taken.chat, taken.message_id)
            kept = [one for one in self._files if (one.chat, one.message_id) != gone]
            self._files = deque(kept, maxlen=_KEPT)
            return
        sent = (_in_notice if is_notice else _in_message)(event, self_id, now)
        if sent is not None:
            twin = next((one for one in reversed(self._files) if _is_twin(one, sent)), None)
            if twin is not None:
                self._files.remove(twin)
                sent = replace(
                    sent,
                    data={**twin.data, **sent.data},
                    message_id=sent.message_id or twin.message_id,
                    told_twice=True,
                )
            self._files.append(sent)
            until, answer = self._awaited.pop((sent.chat, sent.user_id), (now, None))
            if answer is not None and now < until:
                answer()

    def of(self, chat: ChatKey, user_id: str, since: datetime) -> list[SentFile]:
        """What somebody sent in a chat since then, the newest first."""
        found = [one for one in self._files if (one.chat, one.user_id) == (chat, user_id)]
        return [one for one in reversed(found) if one.at >= since]

    def quoted(self, chat: ChatKey, message_id: str) -> SentFile | None:
        """The file in this message."""
        where = (chat, message_id)
        return next((one for one in self._files if (one.chat, one.message_id) == where), None)

    def expect(
        self, chat: ChatKey, user_id: str, until: datetime, answer: Callable[[], None]
    ) -> None:
        """Call `answer`, once, when this person has sent a file in this chat."""
        self._awaited = {key: one for key, one in self._awaited.items() if one[0] > until - _TWINS}
        self._awaited[chat, user_id] = until, answer


def _in_notice(event: object, self_id: str, now: datetime) -> SentFile | None:
    told = uploaded(event, self_id=self_id, now=now)
    return None if told is None else SentFile(*told)


def _in_message(event: object, self_id: str, now: datetime) -> SentFile | None:
    original = getattr(event, "original_message", None) or ()
    if not any(getattr(segment, "type", None) == "file" for segment in original):
        return None
    message = incoming(event, self_id=self_id, now=now)
    if message is None or message.source != "event":
        return None
    data = next((one["data"] for one in message.segments if one["type"] == "file"), {})
    return SentFile(message.chat, message.user_id, message.time, data, message.message_id)


def _is_twin(one: SentFile, other: SentFile) -> bool:
    """Whether one is the message and the other the notice of one file."""
    told = [(sent.chat, sent.user_id, name_of(sent.data)) for sent in (one, other)]
    return (
        told[0] == told[1]
        and not (one.told_twice or other.told_twice)
        and (one.message_id is None) != (other.message_id is None)
        and abs(one.at - other.at) < _TWINS
    )


async def fetch(bot: Bot, told: Mapping[str, Any], *, group_id: str | None, user_id: str) -> bytes:
    """The content of a file of which this was told. Raises NotFetched with one line why not."""
    size = size_of(told)
    if size is not None and size > LARGEST:
        raise NotFetched(f"它有 {file_size(size)}，这里最多收 {file_size(LARGEST)}")
    reason = "OneBot 一端没有给出文件的内容"
    async for place in _places(bot, told, group_id, user_id):
        try:
            return await _read(bot, place)
        except NotFetched as error:
            reason = str(error)
            logger.info(f"文件没有从这里拿到：{reason}")
    raise NotFetched(reason)


async def _places(
    bot: Bot, told: Mapping[str, Any], group_id: str | None, user_id: str
) -> AsyncIterator[Mapping[str, Any]]:
    """What is known of where the content is; the later ones cost a call each."""
    yield told
    for file_id in dict.fromkeys(str(told[key]) for key in _IDS if told.get(key)):
        asked = {"file_id": file_id}
        if group_id is not None:
            where = {"group_id": int(group_id), "busid": told.get("busid") or 0}
            call = ("get_group_file_url", asked | where)
        else:
            # Lagrange wants the hash as well.
            where = {"user_id": int(user_id)}
            if file_hash := told.get("file_hash") or told.get("hash"):
                where["file_hash"] = file_hash
            call = ("get_private_file_url", asked | where)
        for api, values in (call, ("get_file", asked)):
            try:
                answer = await bot.call_api(api, **values)
            except (ActionFailed, ApiNotAvailable, NetworkError) as error:
                logger.info(f"{api} 没有给出文件：{error!r}")
                continue
            if isinstance(answer, Mapping):
                yield {**answer, "answered": True}


async def _read(bot: Bot, place: Mapping[str, Any]) -> bytes:
    content, url, path = (place.get(key) for key in ("base64", "url", "file"))
    if isinstance(content, str) and content and place.get("answered"):
        if len(content) > 2 * LARGEST:
            raise NotFetched("文件太大了")
        try:
            return b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            raise NotFetched("文件的内容不对") from None
    peer = peer_address(bot)
    if isinstance(url, str) and url.startswith(("http://", "https://")):
        return await download(url, peer, largest=LARGEST, seconds=_SECONDS)
    # A path means something only where the other end runs on this machine, and only of its word.
    if place.get("answered") and isinstance(path, str) and peer in _HERE:
        return await asyncio.to_thread(_read_path, Path(path))
    raise NotFetched("OneBot 一端没有给出文件的地址")


def _read_path(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST:
            raise NotFetched("文件太大了")
        return path.read_bytes()
    except OSError as error:
        raise NotFetched("OneBot 一端只给了它那边的路径，从这里读不到") from error

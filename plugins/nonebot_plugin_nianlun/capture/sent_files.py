"""Getting a file that somebody sent, from the OneBot end."""

from __future__ import annotations

import asyncio
from base64 import b64decode
import binascii
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from nonebot import logger
from nonebot.adapters.onebot.v11 import ActionFailed, ApiNotAvailable, Bot, NetworkError

from .downloading import NotFetched, download
from .other_side import peer_address

LARGEST = 64 << 20
"""Bytes of a file that is taken."""
_SECONDS = 120.0
_HERE = frozenset({"127.0.0.1", "::1"})


async def fetch(bot: Bot, told: Mapping[str, Any], *, group_id: str | None, user_id: str) -> bytes:
    """The content of a file of which this was told. Raises NotFetched with one line why not."""
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
    file_id = told.get("file_id") or told.get("id")
    if file_id is None:
        return
    asked = {"file_id": file_id}
    if group_id is not None:
        call = (
            "get_group_file_url",
            asked | {"group_id": int(group_id), "busid": told.get("busid", 0)},
        )
    else:
        call = ("get_private_file_url", asked | {"user_id": int(user_id)})
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
        raise NotFetched(f"文件读不了：{error.strerror or error}") from error

"""What is asked of the OneBot end itself: where it is, and the lines of a forward."""

from __future__ import annotations

import asyncio
from ipaddress import IPv6Address, ip_address

from nonebot.adapters import Bot
from nonebot.exception import AdapterException

from .forwards import Ask, NotOpened

_SECONDS = 15.0


def peer_address(bot: Bot) -> str | None:
    """The IP address at the other end of a bot's WebSocket; None when it cannot be told.

    The drivers keep it in different places: starlette's `client` where it connected to us,
    websockets' `remote_address` where we connected to it.
    """
    connections = getattr(bot.adapter, "connections", None)
    link = connections.get(bot.self_id) if isinstance(connections, dict) else None
    inner = getattr(link, "websocket", None)
    for place in (getattr(inner, "client", None), getattr(inner, "remote_address", None)):
        if isinstance(place, tuple) and place:
            try:
                found = ip_address(str(place[0]).partition("%")[0])
            except ValueError:
                continue
            mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
            return str(mapped or found)
    return None


def forward_lines(bot: Bot) -> Ask:
    """Asks this bot's OneBot end for the lines behind a forward's id."""

    async def ask(number: str) -> object:
        try:
            async with asyncio.timeout(_SECONDS):
                # The id goes under both names: the standard's, and go-cqhttp's and NapCat's.
                return await bot.call_api("get_forward_msg", id=number, message_id=number)
        except (AdapterException, TimeoutError) as error:
            raise NotOpened(f"get_forward_msg 没有给出内容：{type(error).__name__}") from error

    return ask

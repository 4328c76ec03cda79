"""Talks with a running bot, and the prompt of each of its replies as the model was given it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from itertools import pairwise
import json
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from plugins.nonebot_plugin_nianlun.chat.persona import load_persona, reply_rules
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from tests.e2e.checks import asked, calls_for_notes, until
from tests.support.bot_process import BotProcess
from tests.support.model_server import ModelServer
from tests.support.onebot_client import OneBotClient
from tests.support.onebot_platform import Payload, Segments, as_segments, mention

ZONE = ZoneInfo("Asia/Shanghai")
# A talk that a day's end goes through would have another line about days.
STARTS_AT = "00:00" if 2 <= datetime.now(ZONE).hour < 12 else "04:00"
CALENDAR = Calendar(ZONE, time.fromisoformat(STARTS_AT))
CHARACTER = "小忆"
PLACE = "QQ群「摸鱼研究所①群」"

Turns: TypeAlias = list[tuple[str, str]]
"""Role and text of each turn behind the system's, without the clock at the very end."""


def moment(event: Payload) -> datetime:
    return CALENDAR.local(datetime.fromtimestamp(event["time"], UTC))


def at(event: Payload) -> str:
    """`10:32`."""
    return f"{moment(event):%H:%M}"


def day(event: Payload) -> str:
    """`—— 2026-11-30 周一 ——`, for the day of an event."""
    found = CALENDAR.day_of(moment(event))
    return f"—— {found} 周{'一二三四五六日'[found.weekday()]} ——"


@dataclass
class Prompt:
    """What reached the model for one reply."""

    system: str
    turns: Turns
    whole: str
    """Everything that the request holds, as text."""
    tools: list[str]


@dataclass
class Talk:
    """One chat: a group, or without `group` a private chat."""

    bot: BotProcess
    client: OneBotClient
    model: ModelServer
    group: int | None = None
    peer: int = 0
    heard: list[Payload] = field(default_factory=list)

    @property
    def chat(self) -> str:
        return f"private:{self.peer}" if self.group is None else f"group:{self.group}"

    async def say(
        self,
        message: str | Segments,
        user_id: int,
        nickname: str,
        *,
        card: str = "",
        role: str = "member",
    ) -> Payload:
        """Somebody says something, and it is stored; returns the event."""
        if self.group is None:
            event = await self.client.private_message(message, user_id, nickname)
        else:
            event = await self.client.group_message(
                message, user_id, nickname, card=card, role=role, group_id=self.group
            )
        await self.wait_for(event["message_id"])
        self.heard.append(event)
        return event

    async def ask(
        self,
        message: str | Segments,
        user_id: int,
        nickname: str,
        answer: str,
        *,
        card: str = "",
        call: bool = True,
    ) -> tuple[Payload, Prompt]:
        """Somebody calls the bot, with an @ in a group unless not `call`, which says `answer`; the
        event and the prompt of that reply."""
        segments = as_segments(message)
        if self.group is not None and call:
            segments = [mention(self.client.self_id), *segments]
        before = len(self.model.requests)
        self.model.script([answer])
        began = datetime.now(UTC)
        event = await self.say(segments, user_id, nickname, card=card)
        sent = await self.client.wait_for_send(self.group or self.peer)
        assert sent.text == answer
        await self.wait_for(sent.message_id)
        [request] = self.model.requests[before:]
        assert not calls_for_notes(request)
        return event, _read(request, began)

    async def wait_for(self, message_id: object) -> None:
        """Return once the message with this id of the platform's is stored."""
        query = "SELECT 1 FROM nianlun_message WHERE message_id = ?"
        await until(lambda: self.bot.query(query, str(message_id)))

    async def withdraw(self, event: Payload) -> None:
        query = "SELECT 1 FROM nianlun_message WHERE message_id = ? AND withdrawn_at IS NOT NULL"
        await self.client.recall(event)
        await until(lambda: self.bot.query(query, str(event["message_id"])))


def _read(request: dict[str, Any], began: datetime) -> Prompt:
    """The request taken apart, once its shape is what it has to be: one system turn, then those of
    users and of the character, which end with one of a user's that tells the time."""
    turns = request["messages"]
    for turn in turns:
        assert set(turn) == {"role", "content"}
        assert isinstance(turn["content"], str)
    assert [turn["role"] for turn in turns].count("system") == 1
    assert turns[0]["role"] == "system"
    assert {turn["role"] for turn in turns[1:]} <= {"user", "assistant"}
    assert turns[-1]["role"] == "user"
    for before, behind in pairwise(turns):
        assert before["role"] != "user" or behind["role"] != "user"
    last = turns[-1]["content"]
    clock = next(end for end in map(_clock, (began, datetime.now(UTC))) if last.endswith(end))
    said = [(turn["role"], turn["content"]) for turn in turns[1:-1]]
    said.append(("user", last.removesuffix(clock)))
    tools = [tool["function"]["name"] for tool in request.get("tools", [])]
    whole = asked(request) + json.dumps(request.get("tools", []), ensure_ascii=False)
    return Prompt(turns[0]["content"], said, whole, tools)


def _clock(now: datetime) -> str:
    local = CALENDAR.local(now)
    return f"\n\n【此刻】{local:%Y-%m-%d %H:%M} 周{'一二三四五六日'[local.weekday()]}"


def base(place: str = PLACE) -> str:
    """The system turn of a chat that has no memory yet."""
    return f"{load_persona(None, CHARACTER)}\n\n{reply_rules()}\n\n你在{place}里。"

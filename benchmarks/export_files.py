"""Chat exports to measure imports with: one conversation, written as each format has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
import json
from pathlib import Path
import random
from typing import Any, TextIO
from zoneinfo import ZoneInfo

from wire import group_messages

GROUP = "742100123"
SELF_ID = "3889001234"
_ZONE = ZoneInfo("Asia/Shanghai")
_BEGINS = datetime(2023, 1, 1, 1, 0, tzinfo=UTC)
_REPLIES, _PICTURES, _MENTIONS, _WITHDRAWN = 0.06, 0.05, 0.04, 0.003
_WINDOW = 40


@dataclass(frozen=True)
class Said:
    """One line of the conversation."""

    number: int
    time: datetime
    user_id: str
    name: str
    text: str
    reply_to: int | None
    mentions: str | None
    picture: bool
    withdrawn: bool


def conversation(count: int, seed: int = 1) -> Iterator[Said]:
    """A group of sixty over years: bursts of talk, silences, replies, pictures."""
    dice = random.Random(seed)
    time = _BEGINS
    for number, event in zip(range(1, count + 1), group_messages(1, seed), strict=False):
        pause = dice.expovariate(1 / 40) if dice.random() < 0.97 else dice.uniform(1200, 20_000)
        time += timedelta(seconds=int(pause))
        sender = event["sender"]
        own = dice.random() < 0.08
        yield Said(
            number=number,
            time=time,
            user_id=SELF_ID if own else str(sender["user_id"]),
            name="小忆" if own else sender["card"] or sender["nickname"],
            text=event["raw_message"],
            reply_to=number - dice.randint(1, 9) if dice.random() < _REPLIES else None,
            mentions=str(sender["user_id"] + 1) if dice.random() < _MENTIONS else None,
            picture=dice.random() < _PICTURES,
            withdrawn=dice.random() < _WITHDRAWN,
        )


def qce_json(file: TextIO, lines: Iterator[Said]) -> None:
    """As qq-chat-exporter 6 writes it: one message a line."""
    head = {"name": "QQChatExporter", "copyright": "", "version": "6.2.7"}
    chat = {"name": "摸鱼研究所", "type": "group", "selfUin": SELF_ID, "peerUin": GROUP}
    file.write(f'{{\n  "metadata":{_json(head)},\n  "chatInfo":{_json(chat)},\n  "messages":[')
    for said in lines:
        file.write(f"{',' if said.number > 1 else ''}\n    {_json(_qce_message(said))}")
    file.write("\n  ]\n}\n")


def _qce_message(said: Said) -> dict[str, Any]:
    elements: list[dict[str, Any]] = []
    if said.reply_to is not None and said.reply_to > 0:
        quoted = {"messageId": _id(said.reply_to), "senderUin": "10001", "content": "…"}
        elements.append({"type": "reply", "data": quoted})
    if said.mentions:
        at = {"uid": f"u_{said.mentions}", "uin": said.mentions, "name": f"昵称{said.mentions}"}
        elements.append({"type": "at", "data": at})
    elements.append({"type": "text", "data": {"text": said.text}})
    if said.picture:
        picture = {"filename": f"{said.number:032X}.jpg", "size": 48_213, "width": 1080}
        elements.append({"type": "image", "data": picture})
    sender = {"uid": f"u_{said.user_id}", "uin": said.user_id, "name": said.name}
    return {
        "id": _id(said.number),
        "seq": str(30_000 + said.number),
        "timestamp": int(said.time.timestamp() * 1000),
        "time": said.time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "sender": sender | {"nickname": said.name, "groupCard": said.name},
        "type": "text",
        "content": {"text": said.text, "elements": elements, "resources": [], "mentions": []},
        "recalled": said.withdrawn,
        "system": False,
    }


def qq_text(file: TextIO, lines: Iterator[Said]) -> None:
    """As QQ for PC writes it: a heading, the text, an empty line."""
    rule = "=" * 64
    file.write("\ufeff消息记录（此消息记录为文本格式，不支持重新导入）\r\n\r\n")
    file.write(f"{rule}\r\n消息分组:我的群聊\r\n{rule}\r\n消息对象:摸鱼研究所\r\n{rule}\r\n\r\n")
    for said in lines:
        local = said.time.astimezone(_ZONE)
        clock = f"{local:%Y-%m-%d} {local.hour}:{local:%M:%S}"
        picture = "[图片]" if said.picture else ""
        file.write(f"{clock} {said.name}({said.user_id})\r\n{said.text}{picture}\r\n\r\n")


def native(file: TextIO, lines: Iterator[Said]) -> None:
    """As our own export writes it, with an activity for each few dozen messages."""
    chat = {"chat": f"group:{GROUP}", "self_id": SELF_ID, "timezone": _ZONE.key}
    header = {"type": "header", "format": "nianlun", "version": 1, **chat}
    file.write(f"{_json(header | {'exported_at': '2026-11-29T00:00:00Z'})}\n")
    settings = {"type": "settings", "paused": False, "muted": False, "persona": None}
    file.write(f"{_json(settings | {'daily_token_limit': None})}\n")
    activities: list[dict[str, Any]] = []
    for said in lines:
        file.write(f"{_json(_native_message(said))}\n")
        date = (said.time.astimezone(_ZONE) - timedelta(hours=4)).date().isoformat()
        last = activities[-1] if activities else None
        if last is None or last["date"] != date or said.number >= last["from_seq"] + _WINDOW:
            activities.append(_activity(len(activities) + 1, date, said))
        activities[-1] |= {"to_seq": said.number, "time": _utc(said.time)}
    days: dict[str, list[int]] = {}
    for activity in activities:
        file.write(f"{_json(activity)}\n")
        days.setdefault(activity["date"], []).append(activity["id"])
    for date, sources in days.items():
        file.write(f"{_json(_day(date, sources))}\n")


def _native_message(said: Said) -> dict[str, Any]:
    segments = [{"type": "text", "data": {"text": said.text}}]
    if said.picture:
        segments.append({"type": "image", "data": {"file": f"{said.number:032X}.jpg"}})
    text = f"{said.text}[图片]" if said.picture else said.text
    return {
        "type": "message",
        "seq": said.number,
        "message_id": _id(said.number),
        "time": _utc(said.time),
        "user_id": "me" if said.user_id == SELF_ID else said.user_id,
        "name": said.name,
        "text": "" if said.withdrawn else text,
        "segments": [] if said.withdrawn else segments,
        "reply_to": said.reply_to if said.reply_to and said.reply_to > 0 else None,
        "withdrawn": said.withdrawn,
    }


def _activity(number: int, date: str, said: Said) -> dict[str, Any]:
    return {
        "type": "activity",
        "id": number,
        "date": date,
        "from_seq": said.number,
        "text": f"{said.name}说起{said.text[:20]}，大家聊了一阵。（关键消息：[{said.number}]）",
        "key_messages": [said.number],
        "origin": "window",
        "owner": None,
        "writer": "offline",
        "written_at": "2026-11-28T00:00:00Z",
    }


def _day(date: str, sources: list[int]) -> dict[str, Any]:
    return {
        "type": "day",
        "date": date,
        "text": "这天聊得不少。",
        "key_messages": [],
        "sources": sources,
        "version": 1,
        "writer": "offline",
        "written_at": "2026-11-28T00:00:01Z",
        "versions": [],
    }


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _id(number: int) -> str:
    return str(7_520_000_000_000_000_000 + number * 0x9E3779B1)


def _utc(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


FORMATS: dict[str, Callable[[TextIO, Iterator[Said]], None]] = {
    "qce-json": qce_json,
    "qq-text": qq_text,
    "nianlun": native,
}


def write(path: Path, name: str, count: int) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        FORMATS[name](file, conversation(count))

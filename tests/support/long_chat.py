"""Years of a chat on a compressed clock, noted by a writer that forgets a tenth each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha256
import random
from typing import Literal
from zoneinfo import ZoneInfo

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.notes import check_note
from plugins.nonebot_plugin_nianlun.memory.rollups import RollupPolicy
from plugins.nonebot_plugin_nianlun.memory.units import count_units
from plugins.nonebot_plugin_nianlun.memory.upkeep import Upkeep
from plugins.nonebot_plugin_nianlun.memory.windows import WindowPolicy
from plugins.nonebot_plugin_nianlun.store import chats, memories, messages, notes, recording
from plugins.nonebot_plugin_nianlun.types import (
    UNIT_LIMITS,
    Activity,
    ChatKey,
    Incoming,
    Memory,
    MemoryKind,
    Note,
    NoteKind,
    RollupTask,
    Scene,
    Window,
)
from tests.support.scripted_writer import SetClock

GROUP = ChatKey("10001", "group", "123")
_ZONE = ZoneInfo("Asia/Shanghai")
CALENDAR = Calendar(_ZONE, time(4))
_LAYERS: tuple[MemoryKind, ...] = ("year", "month", "day")
_BELOW: dict[MemoryKind, MemoryKind] = {"year": "month", "month": "day"}
_WHO = ("小鹿", "阿禾", "老周", "蔓蔓", "川子", "阿宁", "陈默", "果果", "二筒", "大橘")
_PETS = ("猫", "狗", "仓鼠", "乌龟", "鹦鹉")
_DISHES = ("年糕", "汤圆", "麻薯", "豆包", "锅巴", "米线", "凉皮", "烧麦", "春卷", "肠粉")
_CHATTER = ("吃火锅", "又下雨了", "地铁迟到", "周末爬山", "好困", "开会", "哈哈哈", "打游戏")


def statements(count: int) -> list[str]:
    """So many different facts, none of which is part of another."""
    found = [
        f"{who}的{pet}叫{first}{second}"
        for first in _DISHES
        for second in _DISHES
        for pet in _PETS
        for who in _WHO
        if first != second
    ]
    return random.Random(7).sample(found, count)


class ForgetfulWriter:
    """Strings the pieces of its sources together, facts first, and loses one in ten each time.

    Which ones is up to a hash that differs for every text and every time one is written: what is
    rewritten from its own text again and again is soon gone.
    """

    name: Literal["model"] = "model"

    def __init__(self, facts: Iterable[str]) -> None:
        self._facts = frozenset(facts)
        self._written: Counter[str] = Counter()

    async def write_activity(self, window: Window, scene: Scene) -> Note | None:
        pieces = [message.text for message in window.messages]
        seq = window.messages[0].seq
        text, keys = self._write("activity", f"{window.date}#{seq}", pieces, [seq])
        return Note(text, keys, self.name)

    async def write_memories(
        self, tasks: Sequence[RollupTask], scene: Scene, has_next_tasks: bool
    ) -> list[Note]:
        return [Note(*self._rolled_up(task), self.name) for task in tasks]

    def _rolled_up(self, task: RollupTask) -> tuple[str, tuple[int, ...]]:
        texts = [source.text for source in task.sources]
        if not task.rebuild and task.target is not None:
            texts.insert(0, task.target.text)
        pieces = [piece for text in texts for piece in text.split("。（")[0].split("，")[1:]]
        keys = [key for source in task.sources for key in source.key_messages]
        return self._write(task.kind, task.period, pieces, keys)

    def _write(
        self, kind: NoteKind, period: str, pieces: Sequence[str], keys: Sequence[int]
    ) -> tuple[str, tuple[int, ...]]:
        self._written[period] += 1
        salt = f"{period}|{self._written[period]}"
        kept = [piece for piece in dict.fromkeys(pieces) if not _is_lost(piece, salt)]
        kept.sort(key=lambda piece: piece not in self._facts)
        text = "我记得"
        for piece in kept:
            if count_units(f"{text}，{piece}") > UNIT_LIMITS[kind]:
                break
            text += f"，{piece}"
        return check_note(kind, f"{text}。（关键消息：{[*keys[:3]]}）", keys)


def _is_lost(piece: str, salt: str) -> bool:
    return sha256(f"{salt}|{piece}".encode()).digest()[0] * 10 < 256


class LongChat:
    """A group that talks every day, and a bot that does what is owed after each talk."""

    def __init__(self, facts: Sequence[str], first_day: date) -> None:
        self.facts = facts
        self.day = first_day
        self.clock = SetClock(_local(first_day, 8))
        self.planted: dict[str, int] = {}
        """The message, by its number, that says each of the facts."""
        self.said = 0
        self.failures: list[str] = []
        self._writer = ForgetfulWriter(facts)
        self._dice = random.Random(11)

    @property
    def chat_id(self) -> int:
        return 1

    async def live(self, days: int, count: int) -> None:
        """So many days with about as much talk each, `count` lines and the facts among them."""
        dice = self._dice
        spots = iter(sorted(dice.sample(range(1, count + 1), len(self.facts))))
        pending = dict(zip(spots, self.facts, strict=True))
        for number in range(1, days + 1):
            owed = count * number // days - self.said
            await self._live_a_day(owed, pending)

    async def _live_a_day(self, count: int, pending: dict[int, str]) -> None:
        """Two talks with a silence between them, and the end of the day."""
        for hour, part in ((12, count // 2), (21, count - count // 2)):
            start = _local(self.day, hour, self._dice.randrange(60))
            await self._talk(part, start, pending)
            await self._tick(start + timedelta(seconds=75 * part + 1500))
        self.day += timedelta(days=1)
        await self._tick(_local(self.day, 4, 3))

    async def _talk(self, count: int, start: datetime, pending: dict[int, str]) -> None:
        batch = []
        for number in range(count):
            self.said += 1
            text = "、".join(self._dice.choices(_CHATTER, k=2)) + str(self.said)
            if fact := pending.get(self.said):
                text = fact
                self.planted[fact] = self.said
            who = self._dice.randrange(len(_WHO))
            batch.append(
                Incoming(
                    chat=GROUP,
                    time=start + timedelta(seconds=75 * number),
                    user_id=f"2000{who}",
                    name=_WHO[who],
                    segments=[{"type": "text", "data": {"text": text}}],
                    source="event",
                    message_id=str(self.said),
                )
            )
        await recording.record(batch, readable, "小忆", batch[-1].time)

    async def _tick(self, now: datetime) -> None:
        self.clock.time = now
        self.failures += (await self._upkeep().run(self.chat_id)).errors

    def _upkeep(self) -> Upkeep:
        async def scene(_: str) -> Scene:
            return Scene(GROUP, "QQ群", "小忆", "人设")

        async def ours() -> bool:
            return True

        return Upkeep(
            messages=messages,
            memories=memories,
            notes=notes,
            writer=self._writer,
            fallback=self._writer,
            clock=self.clock,
            calendar=CALENDAR,
            windows=WindowPolicy(messages=50, min_messages=8, idle=timedelta(minutes=20)),
            rollups=RollupPolicy(pending_activities=20, keep_days=7),
            scene=scene,
            still_ours=ours,
        )


class Recollection:
    """All current texts of a chat, and what can be reached from the top through the sources."""

    def __init__(self, activities: Sequence[Activity], layers: dict[str, list[Memory]]) -> None:
        self.texts: dict[str, list[str]] = {
            "activity": [activity.text for activity in activities],
            **{kind: [memory.text for memory in layers[kind]] for kind in _LAYERS},
        }
        self._activities = {str(activity.number): activity for activity in activities}
        self._memories = {(m.kind, m.period): m for kind in _LAYERS for m in layers[kind]}
        self.reached_texts: list[str] = []
        self.reached_seqs: set[int] = set()
        # What is not folded into anything yet stands before a reply by itself.
        for memory in self._memories.values():
            if memory.kind == "year" or not memory.merged:
                self._walk(memory)
        for activity in activities:
            if not activity.merged:
                self._reach(activity)

    @classmethod
    async def of(cls, chat_id: int) -> Recollection:
        layers = {kind: await memories.all_memories(chat_id, kind) for kind in _LAYERS}
        return cls(await memories.all_activities(chat_id), {**layers})

    def _walk(self, memory: Memory) -> None:
        self.reached_texts.append(memory.text)
        for source in memory.sources:
            if memory.kind == "day":
                self._reach(self._activities[source])
            else:
                self._walk(self._memories[_BELOW[memory.kind], source])

    def _reach(self, activity: Activity) -> None:
        self.reached_texts.append(activity.text)
        for first, last in activity.ranges:
            self.reached_seqs.update(range(first, last + 1))

    def share_in(self, layer: str, facts: Sequence[str]) -> float:
        """How many of the facts still stand in the texts of a layer, 0 to 1."""
        told = "\n".join(self.texts[layer])
        return sum(fact in told for fact in facts) / len(facts)


def _local(day: date, hour: int, minute: int = 0) -> datetime:
    return datetime.combine(day, time(hour, minute), _ZONE).astimezone(UTC)


async def begin(facts: Sequence[str], first_day: date) -> LongChat:
    """A chat without any message on the open store."""
    chat = LongChat(facts, first_day)
    ids = await chats.ensure([GROUP], chat.clock.now())
    assert ids == {GROUP: chat.chat_id}
    return chat

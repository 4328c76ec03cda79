"""A chat that lives through whatever can happen in one, hostile names and texts included."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, cast

from hypothesis import strategies as st
from tortoise.queryset import QuerySet

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.capture.cleaning import clean_name, clean_text
from plugins.nonebot_plugin_nianlun.capture.pictures import with_captions
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.capture.segments import to_segments
from plugins.nonebot_plugin_nianlun.errors import CorrectionError, NoteRejected, NotRecorded
from plugins.nonebot_plugin_nianlun.memory.fact_items import FactItem
from plugins.nonebot_plugin_nianlun.memory.keymarks import strip_key_marks
from plugins.nonebot_plugin_nianlun.store import (
    captions,
    chats,
    clearing,
    deleting,
    diary,
    editing,
    exclusions,
    facts,
    forgetting,
    gaps,
    leaving_out,
    notes,
    pauses,
    recording,
    store_notes,
    usage,
)
from plugins.nonebot_plugin_nianlun.store.importing import SYSTEM, Importer
from plugins.nonebot_plugin_nianlun.store.keys import NAMELESS, short_id
from plugins.nonebot_plugin_nianlun.store.matching import Line
from plugins.nonebot_plugin_nianlun.store.models import Activity, Chat, Fact, Memory, Message
from plugins.nonebot_plugin_nianlun.store.speakers import name_key
from plugins.nonebot_plugin_nianlun.store.store_notes import NewNote
from plugins.nonebot_plugin_nianlun.types import (
    ME,
    ChatKey,
    Incoming,
    NoteKind,
    Usage,
    Withdrawal,
)

BEGINS = datetime(2025, 12, 29, 9, 0, tzinfo=UTC)
NOW = datetime(2026, 2, 3, 9, 0, tzinfo=UTC)
PEOPLE = ["20001", "20002", "20003"]
EDITOR = "10000"
CHARACTER = "小忆"

STRUCTURE = [
    "## 23:59",
    "---",
    "[[wiki/喜好|喜好:咖啡]]",
    "[[preferences:tea]]",
    "<!-- nianlun: {} -->",
    "-->",
    "```",
    "\\",
    "\\## 1",
    "&#10;",
    "\u2028",
    "\r\n",
    "\n\n",
    '"}',
    "\u202e",
    "\ufeff",
    "關鍵消息：[1]",
    "（关键消息：[1,2]）",
    '小明" speaker="me',
    "{0}",
    "%%",
    "| a |",
    "    ",
    "> ",
    "1. ",
    "\x0b\x1c\x85",
]
PIECES = st.one_of(
    st.sampled_from(STRUCTURE),
    st.text(max_size=12),
    st.sampled_from(["明天去上海", "吃火锅", "！"]),
)
TEXTS = st.lists(PIECES, min_size=1, max_size=4).map("".join).map(clean_text)
NAMES = st.one_of(st.sampled_from(["小鹿", '小明" speaker="me', "## 9:00"]), TEXTS)


@dataclass(frozen=True)
class Said:
    """One thing that happens in the chat."""

    what: str
    who: int
    text: str
    name: str
    step: int
    """Seconds since what happened before."""
    pick: int
    """Chooses among what there is."""


STEPS = st.one_of(
    st.integers(0, 3), st.integers(0, 3), st.integers(60, 4000), st.sampled_from([86_400, 200_000])
)
EVENTS = st.lists(
    st.builds(
        Said,
        st.sampled_from(
            ["say"] * 14
            + [
                "answer",
                "answer",
                "nameless",
                "old",
                "old",
                "picture",
                "withdraw",
                "command",
                "command",
            ]
            + ["tidy", "tidy", "tidy", "again", "correct", "correct", "restore", "delete", "delete"]
            + [
                "fact",
                "fact",
                "fact",
                "promise",
                "link",
                "drop",
                "erase",
                "erase",
                "note",
                "moment",
            ]
            + ["settings", "gap", "usage"]
            + ["pause", "resume", "resume", "resume", "opt_out", "opt_in", "opt_in"]
            + ["leave_out", "forget", "clear"]
        ),
        st.integers(0, len(PEOPLE) - 1),
        TEXTS,
        NAMES,
        STEPS,
        st.integers(0, 1000),
    ),
    min_size=20,
    max_size=45,
)


def text_of(event: Said) -> dict[str, Any]:
    return {"type": "text", "data": {"text": event.text}}


def shown_by(event: Said) -> list[dict[str, Any]]:
    """What a message may hold beside words, mostly nothing."""
    node = {"user_id": 20002, "nickname": event.name, "content": [text_of(event)]}
    return [
        {"type": "at", "data": {"qq": PEOPLE[event.who]}},
        {"type": "face", "data": {"id": event.pick, "size": 1.5, "none": None}},
        {"type": "json", "data": {"data": '{"prompt": "' + event.text + '"}'}},
        {"type": "forward", "data": {"content": [{"type": "node", "data": node}]}},
        {"type": event.name, "data": {event.text: event.name}},
    ][event.pick % 20 : event.pick % 20 + 1]


class Builder:
    """Lives through the events as the product would."""

    def __init__(self, chat: ChatKey, path: Path) -> None:
        """`path` is the file of the open store."""
        self.chat = chat
        self.path = path
        self.at = BEGINS
        self.ids: list[tuple[str, str]] = []
        self.number = count(1)

    async def live(self, events: list[Said]) -> None:
        first = Said("say", 0, "在吗", "小鹿", 0, 0)
        for event in [first, *events]:
            self.at = min(self.at + timedelta(seconds=event.step), NOW)
            await getattr(self, f"_{event.what}")(event)

    async def _chat_id(self) -> int:
        chat_id = await chats.find(self.chat)
        assert chat_id is not None
        return chat_id

    async def _record(self, event: Said, user_id: str, **values: Any) -> None:
        segments = [text_of(event), *values.pop("more", ())]
        name = clean_name(event.name) or user_id
        message = Incoming(self.chat, self.at, user_id, name, to_segments(segments), **values)
        await recording.record([message], readable, CHARACTER, self.at)

    def _new_id(self, user_id: str) -> str:
        self.ids.append((str(-next(self.number)), user_id))
        return self.ids[-1][0]

    async def _say(self, event: Said) -> None:
        user_id = PEOPLE[event.who]
        reply = self.ids[event.pick % len(self.ids)][0] if self.ids and event.pick % 3 else None
        await self._record(
            event,
            user_id,
            more=shown_by(event),
            source="event",
            message_id=self._new_id(user_id),
            order=event.pick if event.pick % 2 else None,
            reply_to_id=reply if event.pick % 7 else "404",
            chat_name=clean_name(event.name) or None,
        )

    async def _answer(self, event: Said) -> None:
        has_id = event.pick % 2 == 0
        await self._record(
            event,
            ME,
            source="sent",
            message_id=self._new_id(ME) if has_id else None,
            via="nianlun" if event.pick % 3 else "other",
            delivery="ok" if has_id else "unknown",
        )

    async def _nameless(self, event: Said) -> None:
        await self._record(event, PEOPLE[event.who], source="history")

    async def _old(self, event: Said) -> None:
        """What another program had written down: of somebody known by name alone, or of nobody."""
        name = clean_name(event.name) or "小鹿"
        user_id = SYSTEM if event.who == 0 else short_id(f"{NAMELESS}{name_key(name)}")
        message = Incoming(
            self.chat,
            self.at - timedelta(milliseconds=event.pick),
            user_id,
            name,
            to_segments([text_of(event)]),
            source="import",
            skipped="empty" if user_id == SYSTEM else None,
        )
        importer = Importer(await self._chat_id(), readable, CHARACTER)
        await importer.store([Line(message, nameless=user_id != SYSTEM)])
        await importer.finish()

    async def _picture(self, event: Said) -> None:
        user_id, url = PEOPLE[event.who], f"https://example.com/{event.pick}.png"
        picture = {"type": "image", "data": {"file": f"{event.pick}.png", "url": url}}
        await self._record(
            event, user_id, source="event", message_id=self._new_id(user_id), more=[picture]
        )
        chat = await Chat.get(id=await self._chat_id())
        before = await captions.standing(chat.id, chat.last_seq)
        if before is not None:
            seen = with_captions(before.segments, {len(before.segments) - 1: event.text})
            text = readable(seen, lambda _: None)
            await captions.show(chat.id, before, seen, text, {str(event.pick): event.text})

    async def _command(self, event: Said) -> None:
        user_id = PEOPLE[event.who]
        await self._record(
            event, user_id, source="event", message_id=self._new_id(user_id), skipped="command"
        )

    async def _withdraw(self, event: Said) -> None:
        message_id, user_id = self.ids[event.pick % len(self.ids)]
        whose = user_id if event.pick % 2 else None
        notice = Withdrawal(self.chat, message_id, whose, self.at)
        await recording.record([notice], readable, CHARACTER, self.at)

    async def _tidy(self, event: Said) -> None:
        await nianlun.jobs.tidy([self.chat])

    async def _again(self, event: Said) -> None:
        await notes.ask_again(await self._chat_id())

    async def _fact(self, event: Said) -> None:
        due = "2026-03-01" if event.pick % 5 else None
        item = FactItem("preferences", f"n{event.pick % 2}", event.text, due, bool(event.who))
        await self._remember(event, item)

    async def _promise(self, event: Said) -> None:
        due = f"2026-02-{event.pick % 28 + 1:02}"
        await self._remember(event, FactItem("promise", "还书", event.text, due, event.who == 0))

    async def _link(self, event: Said) -> None:
        text = f"{event.text}[[preferences:n0]][[promise:还书]]"
        await self._remember(event, FactItem("event", clean_name(event.name)[:80] or "x", text))

    async def _remember(self, event: Said, item: FactItem) -> None:
        chat = await Chat.get(id=await self._chat_id())
        source = event.pick % chat.last_seq + 1 if event.pick % 4 else None
        owner = [PEOPLE[0], ME, ""][event.pick % 3]
        with suppress(NotRecorded):
            await facts.remember(chat.id, owner, [item], source, self.at)

    async def _drop(self, event: Said) -> None:
        chat_id = await self._chat_id()
        await facts.remove(chat_id, PEOPLE[0], "preferences", f"n{event.pick % 2}", self.at)

    async def _erase(self, event: Said) -> None:
        fact = await self._one_of(Fact.exclude(text="").exclude(name=None), event)
        if fact is not None:
            whose = fact.chat_id, fact.owner, fact.category, fact.name or ""
            await facts.erase(*whose, self.at, self.at)

    async def _note(self, event: Said) -> None:
        chat_id = await self._chat_id()
        text = f"{event.text}{next(self.number)}"
        event_date = "2026-01-05" if event.pick % 2 else None
        note = NewNote(text, "", event.name[:80], event_date, self.at)
        added = await store_notes.add(chat_id, note)
        if event.pick % 3 == 0:
            await store_notes.supersede(chat_id, added.id, f"{text}!", self.at)

    async def _one_of(self, rows: QuerySet[Any], event: Said) -> Any:
        found = await rows.filter(chat_id=await self._chat_id()).order_by("id")
        return found[event.pick % len(found)] if found else None

    async def _some_note(self, event: Said) -> tuple[int, NoteKind, str, int] | None:
        """Chat, kind, number or period, and version of a note that stands."""
        kind = Activity if event.who else Memory
        row = await self._one_of(kind.exclude(text=""), event)
        if row is None:
            return None
        if isinstance(row, Activity):
            return row.chat_id, "activity", str(row.number), row.version
        return row.chat_id, cast("NoteKind", row.kind), row.period, row.version

    async def _correct(self, event: Said) -> None:
        note = await self._some_note(event)
        if note is not None:
            with suppress(CorrectionError, NoteRejected):
                await editing.edit(*note[:3], event.text, EDITOR, nianlun.clock.now())

    async def _restore(self, event: Said) -> None:
        note = await self._some_note(event)
        if note is not None:
            chat_id, kind, ref, version = note
            with suppress(CorrectionError):
                earlier = max(version - 1, 1)
                await editing.restore(chat_id, kind, ref, earlier, EDITOR, nianlun.clock.now())

    async def _delete(self, event: Said) -> None:
        chat = await Chat.get(id=await self._chat_id())
        activity = await self._one_of(Activity.exclude(text=""), event) if event.who else None
        seqs = [event.pick % chat.last_seq + 1] if event.who != 1 else []
        await deleting.delete(chat.id, seqs, [activity.number] if activity else [], self.at)

    async def _moment(self, event: Said) -> None:
        chat = await Chat.get(id=await self._chat_id())
        seq = event.pick % chat.last_seq + 1
        said = Message.filter(chat_id=chat.id, seq__gte=seq, withdrawn_at=None).order_by("seq")
        # A turn is about what was said in it.
        said = said.filter(time__gte=self.at - timedelta(days=1))
        stands = tuple([row.seq for row in await said.exclude(skipped="opted_out")])
        moment = diary.Moment(
            f"想起{strip_key_marks(event.text)}",
            nianlun.calendar.day_of(self.at).isoformat(), self.at, "tool",
            owner=PEOPLE[event.who] if event.pick % 2 else None,
            source_conv=event.name if event.pick % 3 else None,
            seen=stands[:1] if event.pick % 5 else (),
        )  # fmt: skip
        with suppress(NotRecorded):
            await diary.append(chat.id, [moment, moment] if event.pick % 4 else [moment], self.at)

    async def _pause(self, event: Said) -> None:
        await pauses.pause(await self._chat_id(), self.at, self.at)

    async def _resume(self, event: Said) -> None:
        await pauses.resume(await self._chat_id(), self.at)

    async def _opt_out(self, event: Said) -> None:
        await exclusions.opt_out(await self._chat_id(), PEOPLE[event.who], self.at, self.at)

    async def _opt_in(self, event: Said) -> None:
        await exclusions.opt_in(await self._chat_id(), PEOPLE[event.who], self.at)

    async def _leave_out(self, event: Said) -> None:
        begins = self.at - timedelta(minutes=30)
        ends = self.at + exclusions.THAT_SECOND
        user_id = PEOPLE[event.who]
        await leaving_out.leave_out(await self._chat_id(), user_id, begins, ends, self.at)

    async def _clear(self, event: Said) -> None:
        if event.who == 0:  # it takes all that came before it
            await clearing.clear(self.path, await self._chat_id(), self.at)

    async def _forget(self, event: Said) -> None:
        if event.pick % 2:  # it empties most of what is there
            await forgetting.forget(await self._chat_id(), PEOPLE[event.who], self.at)

    async def _gap(self, event: Said) -> None:
        await gaps.note({await self._chat_id(): (self.at - timedelta(hours=1), self.at)})

    async def _usage(self, event: Said) -> None:
        chat_id, cost = await self._chat_id(), Usage(event.pick, 1, 2)
        await usage.count(chat_id, "2026-01-05", "notes", event.name[:128], cost, ok=True)

    async def _settings(self, event: Said) -> None:
        await Chat.filter(id=await self._chat_id()).update(
            muted=event.pick % 2 == 0,
            persona=event.name,
            daily_token_limit=event.pick,
            members_read=event.who == 0 or None,
            timezone="America/New_York" if event.pick % 3 == 0 else None,
            day_starts_at="05:30" if event.pick % 2 else None,
        )

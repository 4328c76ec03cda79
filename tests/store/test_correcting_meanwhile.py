"""Corrections among everything else that goes on: in any order, cut short, and in two processes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
import random
from unittest.mock import patch

import pytest

from plugins.nonebot_plugin_nianlun.errors import CorrectionError, NoteRejected, Overtaken
from plugins.nonebot_plugin_nianlun.memory.fact_items import FactItem
from plugins.nonebot_plugin_nianlun.store import (
    deleting,
    diary,
    editing,
    facts,
    forgetting,
    memories,
    notes,
    search,
    traces,
)
from plugins.nonebot_plugin_nianlun.types import NoteKind
from tests.store.test_editing import DAY_KEY, EDITOR, FIRST, MONTH_KEY, offline, sound
from tests.store.test_upkeep import World, close_days, local, world
from tests.support.standalone import finish, put_package, start

__all__ = ["world"]


class Hands:
    """Somebody who does one thing after another, whatever comes of it."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.said = 0
        self.forgets = True

    def subject(self) -> tuple[NoteKind, str]:
        day = FIRST + timedelta(days=self.random.randrange(5))
        subjects: list[tuple[NoteKind, str]] = [
            ("day", day.isoformat()),
            ("month", f"{day:%Y-%m}"),
            ("year", f"{day:%Y}"),
            ("activity", str(self.random.randint(1, 8))),
        ]
        return self.random.choice(subjects)

    async def edit(self) -> None:
        cited = f"（#{self.random.randint(1, 40)}）" if self.random.random() < 0.3 else ""
        text = f"第{self.random.random()}次写的。{cited}"
        await editing.edit(1, *self.subject(), text, EDITOR, self.world.clock.now())

    async def restore(self) -> None:
        version = self.random.randint(1, 4)
        await editing.restore(1, *self.subject(), version, EDITOR, self.world.clock.now())

    async def rewrite(self) -> None:
        kind, ref = self.subject()
        if kind == "activity":
            activity = await memories.activity(1, int(ref))
            if activity is not None:
                await self.world.upkeep().rewrite_activity(1, activity)
        else:
            await self.world.upkeep().rewrite(1, kind, ref)

    async def delete(self) -> None:
        seqs, numbers = [self.random.randint(1, 60)], []
        if self.random.random() < 0.3:
            seqs, numbers = [], [self.random.randint(1, 8)]
        await deleting.delete(1, seqs, numbers, self.world.clock.now())

    async def say(self) -> None:
        self.said += 1
        day = FIRST + timedelta(days=self.random.randrange(5))
        await self.world.say(
            f"迟到的第{self.said}句", local(day, 12) + timedelta(minutes=self.said)
        )

    async def withdraw(self) -> None:
        await self.world.withdraw(str(self.random.randint(1, 60)))

    async def forget(self) -> None:
        user_id = f"2000{self.random.randrange(3)}"
        await forgetting.forget(1, user_id, self.world.clock.now())

    async def ask_again(self) -> None:
        await notes.ask_again(1)

    async def write_down(self) -> None:
        number = self.random.randrange(5)
        day = FIRST + timedelta(days=number)
        seen = tuple(sorted(self.random.sample(range(8 * number + 1, 8 * number + 9), 3)))
        moment = diary.Moment("一件小事。", day.isoformat(), local(day, 13), "tool", seen=seen)
        await diary.keep_turn(1, seen, (), [moment], self.world.clock.now())

    async def run(self) -> None:
        upkeep = self.world.upkeep() if self.random.random() < 0.5 else offline(self.world)
        await upkeep.run(1, everything=self.random.random() < 0.5)

    async def one(self) -> str:
        """Do one thing; returns which."""
        deeds = [self.edit] * 4 + [self.restore] * 2 + [self.rewrite] * 2
        deeds += [self.delete, self.say, self.say, self.withdraw, self.run, self.run]
        deeds += [self.ask_again, self.write_down, *([self.forget] if self.forgets else [])]
        deed: Callable[[], Awaitable[None]] = self.random.choice(deeds)
        try:
            await deed()
        except (CorrectionError, NoteRejected, Overtaken) as error:
            return f"{deed.__name__}: {error}"
        return deed.__name__


@pytest.mark.parametrize("seed", range(4))
async def test_the_chat_is_sound_after_every_deed(world: World, seed: int) -> None:
    await close_days(world, 5, start=FIRST)
    hands = Hands(world, seed)
    done: list[str] = []
    for _ in range(40):
        done.append(await hands.one())
        try:
            await sound(world)
        except AssertionError:
            pytest.fail(f"after {done}")
    await world.run(everything=True)
    assert (await world.run(everything=True)).memories == 0
    await sound(world)


async def test_two_pairs_of_hands_at_once(world: World) -> None:
    await close_days(world, 5, start=FIRST)
    pairs = [Hands(world, seed) for seed in (11, 12)]

    async def busy(hands: Hands) -> None:
        for _ in range(25):
            await hands.one()

    await asyncio.gather(*map(busy, pairs))
    await world.run(everything=True)
    assert (await world.run(everything=True)).memories == 0
    await sound(world)


class Killed(BaseException):
    """Ends a deed in its last step."""


@pytest.mark.parametrize("deed", ["edit", "restore", "delete", "erase"])
async def test_what_is_cut_short_was_not_done_at_all(world: World, deed: str) -> None:
    await close_days(world, 5, start=FIRST)
    now = world.clock.now()
    await editing.edit(1, "month", MONTH_KEY, "人写的。", EDITOR, now)
    await facts.remember(1, EDITOR, [FactItem("event", "伞", "有一把伞")], None, now)
    deeds: dict[str, Callable[[], Awaitable[object]]] = {
        "edit": lambda: editing.edit(1, "day", DAY_KEY, "人写的。", EDITOR, now),
        "restore": lambda: editing.restore(1, "month", MONTH_KEY, 1, EDITOR, now),
        "delete": lambda: deleting.delete(1, [1], [2], now),
        "erase": lambda: facts.erase(1, EDITOR, "event", "伞", now, now),
    }

    async def die(*_: object) -> None:
        raise Killed

    before = world.dump()
    with patch.object(search, "add", die), patch.object(traces, "owe", die), pytest.raises(Killed):
        await deeds[deed]()
    assert world.dump() == before
    await deeds[deed]()
    assert world.dump() != before
    await sound(world)


CORRECT = """
import asyncio, random, sys
from datetime import UTC, datetime
from pathlib import Path
from nianlun.errors import CorrectionError, StoreLocked
from nianlun.store import database, deleting, editing

async def main():
    now, rng = datetime(2026, 11, 1, 20, 30, tzinfo=UTC), random.Random(5)
    await database.open_store(Path(sys.argv[1]))
    try:
        for number in range(40):
            day = f"2026-10-{28 + number % 3}"
            try:
                if number % 10 == 9:
                    await deleting.delete(1, [rng.randint(1, 40)], [], now)
                else:
                    await editing.edit(1, "day", day, f"他们写的第{number}遍。", "20003", now)
            except CorrectionError:
                pass
    finally:
        await database.close_store()

asyncio.run(main())
"""


async def test_two_processes_correct_one_chat(world: World, tmp_path: Path) -> None:
    await close_days(world, 5, start=FIRST)
    put_package(tmp_path)
    process = start(tmp_path, CORRECT, world.file)
    hands = Hands(world, 21)
    hands.forgets = False  # or no day is left in the end
    done: list[str] = []
    while process.poll() is None:
        done.append(await hands.one())
        await sound(world)
    status, _, complaints = finish(process)
    assert (status, complaints) == (0, "")
    assert done
    await world.run(everything=True)
    assert (await world.run(everything=True)).memories == 0
    await sound(world)
    versions = await memories.versions(1, "day", DAY_KEY)
    text = await memories.target(1, "day", DAY_KEY)
    assert text is not None
    assert [old.version for old in versions] == sorted({old.version for old in versions})
    assert all(old.version < text.version for old in versions)

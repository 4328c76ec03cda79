"""Killed in the middle of a correction, the bot has done all of it or nothing."""

from __future__ import annotations

import os
from pathlib import Path
import time as stopwatch

import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.support.killing import Killing, Violation
from tests.support.loaded_bot import LoadedBot
from tests.support.onebot_client import OneBotClient

ADMIN, GROUP = 20009, 101
KILLS, SEED = 12, 3
DONE = {"改": "改好了", "删": "删掉了消息", "记住": "记住了"}


class KilledWhileCorrecting(Killing):
    """A group whose admin corrects what is remembered while the bot is killed."""

    number = 0
    answered = 0

    async def prepare(self) -> None:
        """Some days of talk, noted."""
        bot = self._bots[0]
        await bot.start()
        async with OneBotClient(self._bot.port) as client:
            for _ in range(60):
                await self._say(client)
            await client.settle()
            await self._until_seen(self.said)
        await bot.kill()
        await self._command(bot, "rollup")

    async def kill_once(self) -> None:
        kind = list(DONE)[self.number % len(DONE)]
        self.number += 1
        bot = self._bots[0]
        # The first is let finish, the second dies before anything is stored.
        die = {1: None, 2: (1, "before")}.get(self.number, self._die(3))
        await bot.start(die=die)
        client = OneBotClient(self._bot.port)
        answer = ""
        try:
            await self._connect(bot, client)
            answer = await self._correct(client, bot, kind)
        except (ConnectionClosed, ConnectionError, InvalidHandshake, TimeoutError):
            pass  # it died by itself
        self._look()
        await bot.kill()
        await client.close()
        self.kills[kind] += 1
        self.check()
        self._check_versions()
        if DONE[kind] in answer:
            self.answered += 1
            self._check_done(kind)

    async def _correct(self, client: OneBotClient, bot: LoadedBot, kind: str) -> str:
        command = f"/记忆 {kind} {self._what(kind)}"
        await client.group_message(command, ADMIN, group_id=GROUP, role="admin")
        end = stopwatch.monotonic() + (
            10 if self.number == 1 else self._dice.choice([0, 0.05, 0.1, 1])
        )
        while bot.alive and stopwatch.monotonic() < end:
            try:
                return (await client.wait_for_send(GROUP, within=0.02)).text
            except TimeoutError:
                self._look()
        return ""

    def _what(self, kind: str) -> str:
        if kind == "记住":
            return f"event:第{self.number}件 有过第{self.number}件事"
        if kind == "改":
            days = self._query(
                "SELECT period FROM nianlun_memory m JOIN nianlun_chat c ON c.id = m.chat_id"
                " WHERE m.kind = 'day' AND m.text <> '' AND c.peer_id = ? ORDER BY period",
                str(GROUP),
            )
            self.day = str(self._dice.choice(days)[0])
            return f"{self.day} 这是改定的第{self.number}遍。"
        left = [
            one
            for one in self.said
            if one.event.get("group_id") == GROUP and one.taken_back_at is None
        ]
        self.deleted = self._dice.choice(left)
        self.deleted.taken_back_at = stopwatch.monotonic()
        [(seq,)] = self._query(
            "SELECT seq FROM nianlun_message WHERE message_id = ?",
            str(self.deleted.event["message_id"]),
        )
        return f"#{seq}"

    def _check_versions(self) -> None:
        """Of every text that a note had before there is exactly one version."""
        kept: dict[tuple[int, str, str], list[int]] = {}
        for chat, kind, ref, number in self._query(
            "SELECT chat_id, kind, ref, version FROM nianlun_note_version ORDER BY version"
        ):
            kept.setdefault((chat, kind, ref), []).append(number)
        for chat, kind, ref, version in self._query(
            "SELECT chat_id, kind, period, version FROM nianlun_memory"
        ):
            if kept.get((chat, kind, ref), []) != list(range(1, version)):
                raise Violation(f"{kind} {ref} of version {version} has {kept}")

    def _check_done(self, kind: str) -> None:
        """What was answered as done is there."""
        if kind == "记住":
            query = "SELECT 1 FROM nianlun_fact WHERE owner = ? AND text = ?"
            found = self._query(query, str(ADMIN), f"有过第{self.number}件事")
        elif kind == "改":
            query = "SELECT 1 FROM nianlun_memory WHERE kind = 'day' AND period = ? AND text LIKE ?"
            found = self._query(query, self.day, f"%这是改定的第{self.number}遍。%")
        else:
            query = "SELECT 1 FROM nianlun_message WHERE message_id = ? AND withdrawn_at NOT NULL"
            found = self._query(query, str(self.deleted.event["message_id"]))
        if not found:
            raise Violation(f"{kind} was answered as done and is not")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="starts bots by forking a loaded one")
async def test_a_correction_is_done_or_not(tmp_path: Path) -> None:
    async with KilledWhileCorrecting(tmp_path / "bot", SEED) as killing:
        await killing.prepare()
        for _ in range(KILLS):
            await killing.kill_once()
        await killing.settle()
        assert sum(killing.kills.values()) == KILLS
        assert killing.answered
        assert killing.answered < KILLS

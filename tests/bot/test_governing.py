"""To govern a chat and to speak for oneself, from the words of a command to what is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
import re
import shutil
from types import SimpleNamespace
from typing import Any, cast

from nonebot import get_driver
import pytest

from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.commands.about_me import AboutMe
from plugins.nonebot_plugin_nianlun.commands.command import Answer, Asked
from plugins.nonebot_plugin_nianlun.commands.desk import Desk
from plugins.nonebot_plugin_nianlun.commands.finding import Finding
from plugins.nonebot_plugin_nianlun.commands.governing import Governing
from plugins.nonebot_plugin_nianlun.commands.tree import Tree
from plugins.nonebot_plugin_nianlun.config import Config, Settings
from plugins.nonebot_plugin_nianlun.errors import NianlunError
from plugins.nonebot_plugin_nianlun.exports import write_json_lines
from plugins.nonebot_plugin_nianlun.imports.places import target
from plugins.nonebot_plugin_nianlun.imports.run import ImportOptions, import_file
from plugins.nonebot_plugin_nianlun.lifecycle import Nianlun
from plugins.nonebot_plugin_nianlun.memory.fact_items import FactItem
from plugins.nonebot_plugin_nianlun.store import chat_settings, chats, clearing, facts, recording
from plugins.nonebot_plugin_nianlun.store.export import lines
from plugins.nonebot_plugin_nianlun.store.models import Chat, Speaker
from plugins.nonebot_plugin_nianlun.store.models import Message as Row
from plugins.nonebot_plugin_nianlun.types import ChatKey, Incoming
from tests.support.scripted_writer import SetClock

GROUP = ChatKey("10001", "group", "123")
OTHER = ChatKey("10001", "group", "456")
NOON = datetime(2026, 11, 27, 4, tzinfo=UTC)
DEER, CHE, BOSS = "20001", "20003", "90001"
PRIVATE = ChatKey("10001", "private", DEER)


@dataclass
class Room:
    """A product with three chats, and people who ask."""

    nianlun: Nianlun
    clock: SetClock
    tree: Tree

    async def say(
        self,
        text: str,
        user_id: str = DEER,
        name: str = "小鹿",
        *,
        chat: ChatKey = GROUP,
        at: datetime | None = None,
    ) -> str:
        """Returns the platform's id of the message."""
        if at is None:
            self.clock.time = at = self.clock.time + timedelta(seconds=1)
        message_id = f"{abs(hash((text, user_id, at, chat)))}"
        segments = [{"type": "text", "data": {"text": text}}]
        line = Incoming(chat, at, user_id, name, segments, "event", message_id=message_id)
        await recording.record([line], readable, "小忆", self.clock.time)
        return message_id

    async def ask(
        self, typed: str, user_id: str = CHE, *, chat: ChatKey = GROUP, quoted: str | None = None
    ) -> Answer:
        self.clock.time += timedelta(seconds=1)
        request = self.tree.read(f"/记忆 {typed}")
        assert request.arguments is not None, typed
        event = SimpleNamespace(get_plaintext=lambda: f"/记忆 {typed}")
        asked = Asked(
            chat, chat, user_id, user_id == BOSS, "admin", self.clock.time, request.arguments,
            quoted, cast(Any, None), cast(Any, event), "/记忆",
        )  # fmt: skip
        answer = await request.command.serve(asked)
        return Answer(answer) if isinstance(answer, str) else answer

    async def told(self, typed: str, user_id: str = CHE, **options: Any) -> str:
        return (await self.ask(typed, user_id, **options)).text

    async def refused(self, typed: str, user_id: str = CHE, **options: Any) -> str:
        with pytest.raises(NianlunError) as raised:
            await self.ask(typed, user_id, **options)
        return str(raised.value)

    async def row(self, chat: ChatKey = GROUP) -> Chat:
        found = await chats.row(chat)
        assert found is not None
        return found

    async def texts(self, chat: ChatKey = GROUP) -> list[str]:
        row = await self.row(chat)
        return [line.text for line in await Row.filter(chat_id=row.id).order_by("seq")]


def code_in(text: str) -> str:
    return re.findall(r"[0-9]{6}", text)[-1]


@pytest.fixture
async def room(prepared_database: Path, tmp_path: Path) -> AsyncIterator[Room]:
    shutil.copy(prepared_database, tmp_path / "nianlun.db")
    folder = tmp_path / "personas"
    folder.mkdir()
    for name, text in {"平常": "平常人。", "猫": "一只猫。", "长": "长" * 30_000}.items():
        (folder / f"{name}.md").write_text(text, "utf-8")
    clock = SetClock(NOON)
    settings = Settings(persona_file=folder / "平常.md", daily_token_limit=5000)
    nianlun = Nianlun(Config(nianlun=settings), tmp_path, get_driver().config, clock)
    await nianlun.open()
    groups = (Governing(nianlun), AboutMe(nianlun), Finding(nianlun))
    found = Room(nianlun, clock, Tree([c for group in groups for c in group.commands()], {"/"}))
    await found.say("群里的第一句")
    await found.say("那边的第一句", chat=OTHER)
    await found.say("私下的第一句", chat=PRIVATE)
    yield found
    await nianlun.close()


async def test_recording_is_paused_and_goes_on(room: Room) -> None:
    assert "不记这里说的话" in await room.told("暂停")
    assert "本来就停着" in await room.told("暂停")
    await room.say("停的时候")
    assert (await room.nianlun.status(GROUP)).paused
    assert "又会记" in await room.told("继续")
    assert "本来就在记" in await room.told("继续")
    await room.say("又记了")
    assert await room.texts() == ["群里的第一句", "", "又记了"]
    assert (await room.nianlun.inspect(GROUP)).findings == ()


async def test_muting_is_known_here_at_once_and_elsewhere_at_the_next_tick(room: Room) -> None:
    assert "只听不说" in await room.told("静音")
    assert GROUP in room.nianlun.mutes
    assert OTHER not in room.nianlun.mutes
    assert "本来就没在说话" in await room.told("静音")
    # Another process lets it speak again.
    await chat_settings.change((await room.row()).id, muted=False)
    assert GROUP in room.nianlun.mutes
    await room.nianlun.tick()
    assert GROUP not in room.nianlun.mutes
    assert "本来就会回话" in await room.told("开口")


async def test_a_persona_is_chosen_from_those_there_are(room: Room) -> None:
    assert "能用的：猫、长" in await room.told("人设")
    assert "用人设 猫" in await room.told("人设 猫.md")
    prompt = await room.nianlun.recaller.prompt(GROUP)
    assert "一只猫" in repr(prompt.messages)
    assert "现在用的人设：猫" in await room.told("人设")
    for name in ("狗", "../平常", "/etc/passwd", "平常", "a" * 300, "\u202ex"):
        assert "没有" in await room.refused(f"人设 {name}"), name
    assert "预算" in await room.refused("人设 长")
    assert (await room.row()).persona == "猫"
    assert "原来的" in await room.told("人设 默认")
    assert (await room.row()).persona is None


async def test_a_limit_stays_below_the_owners(room: Room) -> None:
    assert "每天最多 5000" in await room.told("限额")
    assert "最多用 300 token" in await room.told("限额 ３００")
    assert "只能比它少" in await room.refused("限额 5001")
    assert "最多用 9000 token" in await room.told("限额 9000", BOSS)
    assert "最多用 5000 token" in await room.told("限额 无")
    assert "不用模型" in await room.told("限额 0")
    for wrong in ("-1", "1.5", "一千", "9" * 30, "abc"):
        assert "限额写成一个数" in await room.refused(f"限额 {wrong}"), wrong
    assert (await room.row()).daily_token_limit == 0


async def test_a_group_is_closed_and_opened_to_its_members(room: Room) -> None:
    assert "只有群主" in await room.told("不公开")
    assert not await Desk(room.nianlun).members_read(GROUP)
    assert "每个人都能看" in await room.told("公开")
    assert await Desk(room.nianlun).members_read(GROUP)
    assert "本来就" in await room.told("公开")
    assert "只有群的记忆" in await room.refused("不公开", chat=PRIVATE)


async def test_two_groups_are_linked(room: Room) -> None:
    await room.say("花生过敏要小心", chat=OTHER)
    assert await room.told("搜索 花生") == "没有找到。"
    assert "没有和别的" in await room.told("连通", BOSS)
    answer = await room.ask("连通 群456", BOSS)
    assert answer.privately
    assert "连通了" in answer.text
    assert "群「456」" in await room.told("连通", BOSS)
    assert "在群「456」（那里的 #2）" in await room.told("搜索 花生")
    assert "本来就连着" in await room.told("连通 456", BOSS)
    assert "断开了" in await room.told("断开 group:456", BOSS)
    assert await room.told("搜索 花生") == "没有找到。"
    assert "本来就没有" in await room.told("断开 456", BOSS)


async def test_a_private_chat_is_linked_only_after_a_warning(room: Room) -> None:
    warned = await room.told("连通 人20001", BOSS)
    assert "请先问过" in warned
    assert "没有和别的" in await room.told("连通", BOSS)
    wrong = "000000" if code_in(warned) != "000000" else "000001"
    told = await room.told(f"连通 人20001 {wrong}", BOSS)
    assert told.endswith("，没有连通。要重新来，请发送：/记忆 连通 人20001")
    assert "连通了" in await room.told(f"连通 人20001 {code_in(warned)}", BOSS)
    await room.told("断开 20001", BOSS)
    assert "确认码不对" in await room.told(f"连通 人20001 {code_in(warned)}", BOSS)


async def test_only_what_is_there_can_be_linked(room: Room) -> None:
    assert "没有和 999" in await room.refused("连通 999", BOSS)
    assert "另一个会话" in await room.refused("连通 群123", BOSS)
    for typed in ("群", "人abc", "12 345678 1"):
        with pytest.raises((NianlunError, AssertionError)):
            await room.ask(f"连通 {typed}", BOSS)
    await room.say("同一个号", chat=ChatKey("10001", "group", DEER))
    assert "既是群又是人" in await room.refused(f"连通 {DEER}", BOSS)


async def test_clearing_is_shown_first_and_asks_for_a_code(room: Room) -> None:
    await room.nianlun.tidy(GROUP)
    shown = await room.told("清空")
    assert "消息 1 条，活动 1 条" in shown
    assert await room.texts() == ["群里的第一句"]
    wrong = "000000" if code_in(shown) != "000000" else "000001"
    told = await room.told(f"清空 {wrong}")
    assert told.startswith("确认码不对")
    assert told.endswith("，什么都没有清掉。要重新来，请发送：/记忆 清空")
    assert "什么都没有清掉" in await room.told(f"清空 {code_in(shown)}", DEER)
    done = await room.told(f"清空 {code_in(shown)}")
    assert "清空了这个群的记忆：消息 1 条，活动 1 条" in done
    assert await room.texts() == []
    assert await room.texts(OTHER) == ["那边的第一句"]
    await room.say("新的")
    (row,) = await Row.filter(chat_id=(await room.row()).id)
    assert row.seq == 2
    assert (await room.nianlun.inspect(GROUP)).findings == ()
    assert await clearing.owed() == []


async def test_what_is_known_of_the_asker_and_of_nobody_else(room: Room) -> None:
    await room.say("我也说了", CHE, "阿澈")
    chat_id = (await room.row()).id
    now = room.clock.now()
    await facts.remember(chat_id, DEER, [FactItem("health", "花生", "过敏\n不能吃")], 1, now)
    await facts.remember(chat_id, CHE, [FactItem("health", "牛奶", "乳糖")], 2, now)
    answer = await room.ask("我的记忆", DEER)
    assert answer.privately
    assert "你说的话：1 条，从 2026-11-27 12:00" in answer.text
    assert "你的名字：小鹿" in answer.text
    assert "health:花生：过敏 不能吃" in answer.text
    assert "牛奶" not in answer.text
    await room.told("别记我", DEER)
    assert "现在不记" in await room.told("我的记忆", DEER)
    assert "你说的话：0 条" in await room.told("我的记忆", "29999")


async def test_the_last_half_hour_is_left_out(room: Room) -> None:
    room.clock.time += timedelta(hours=1)
    quoted = await room.say("从这里起")
    await room.say("后悔的话")
    await room.say("别人的话", CHE, "阿澈")
    assert "2 条不记了" in await room.told("别记这段", DEER)
    assert await room.texts() == ["群里的第一句", "", "", "别人的话"]
    assert "没有记着你的话" in await room.told("别记这段", DEER)
    await room.say("又说")
    assert "1 条不记了" in await room.told("别记这段", DEER, quoted=quoted)
    assert "没有记过" in await room.refused("别记这段", DEER, quoted="31415")
    room.clock.time += timedelta(days=2)
    assert "太早了" in await room.refused("别记这段", DEER, quoted=quoted)
    await room.say("现在又记")
    assert (await room.texts())[-1] == "现在又记"
    assert (await room.nianlun.inspect(GROUP)).findings == ()


async def test_what_was_said_before_the_quoted_line_in_its_second_stays(room: Room) -> None:
    before = await room.say("同一秒之前")
    at = room.clock.time
    quoted = await room.say("从这句起", at=at)
    await room.say("同一秒之后", at=at)
    await room.say("下一秒")
    assert "3 条不记了" in await room.told("别记这段", DEER, quoted=quoted)
    kept = ["群里的第一句", "同一秒之前"]
    assert await room.texts() == [*kept, "", "", ""]
    await room.say("从这句起", at=at)
    assert await room.texts() == [*kept, "", "", ""]
    here = await room.row()
    file = room.nianlun.data_dir / "chat.jsonl"
    await write_json_lines(file, lines(GROUP, "Asia/Shanghai", room.clock.time))
    for peer in ("888", GROUP.peer_id):
        options = ImportOptions(targets=(target(f"10001/group:{peer}"),))
        report = await import_file(room.nianlun, file, options)
        assert report.left_out == 0
        chat = ChatKey("10001", "group", peer)
        assert await room.texts(chat) == [*kept, "", "", ""]
    assert "1 条不记了" in await room.told("别记这段", DEER, quoted=before)
    assert await Row.filter(chat_id=here.id).exclude(text="").count() == 1
    assert (await room.nianlun.inspect(GROUP)).findings == ()


async def test_a_superuser_is_forgotten_in_all_chats(room: Room) -> None:
    home = ChatKey("10001", "private", BOSS)
    for chat in (GROUP, OTHER, home):
        await room.say("主人的话", BOSS, "主人", chat=chat)
    assert "-a 只有" in await room.refused("忘记我 -a", DEER)
    shown = await room.told("忘记我 -a", BOSS)
    assert "一共 3 个" in shown
    assert "确认码不对" in await room.told(f"忘记我 {code_in(shown)}", BOSS)
    done = await room.told(f"忘记我 {code_in(shown)} -a", BOSS)
    assert "在 3 个会话里忘记了你：3 条消息" in done
    assert await room.texts() == ["群里的第一句", ""]
    assert await room.texts(PRIVATE) == ["私下的第一句"]
    assert not await Speaker.filter(user_id=BOSS).exists()

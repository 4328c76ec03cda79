"""Who may use which command, over the wire: every verb, said by everybody that there is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
import sqlite3
from typing import NamedTuple

import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.commands.answering import Answering
from plugins.nonebot_plugin_nianlun.commands.desk import Desk
from plugins.nonebot_plugin_nianlun.commands.matcher import all_commands
from plugins.nonebot_plugin_nianlun.commands.permissions import Right, refusal
from tests.e2e.checks import stored, wait_stored
from tests.support.bot_process import BotProcess
from tests.support.onebot_client import OneBotClient

BOSS = 90001
CLOSED = 7009
ELSEWHERE = 7010
SECRET = "石榴色的灯塔"

TABLE: dict[str, tuple[Right, str]] = {
    "帮助": ("all", "帮助"),  # also where nobody may read: how else would they know of the rest?
    "状态": ("govern", "状态"),
    "今天": ("read", "今天"),
    "昨天": ("read", "昨天"),
    "前天": ("read", "前天"),
    "日期": ("read", "2026-01-05"),
    "去年今天": ("read", "去年今天"),
    "预览": ("govern", '预览 他说："好"'),
    "用量": ("govern", "用量"),
    "版本": ("govern", "版本 昨天"),
    "对比": ("govern", "对比 2026-01-05"),
    "谁": ("read", "谁"),
    "说过": ("read", "说过 阿澈"),
    "搜索": ("read", "搜索 早上 阿澈 今天"),
    "原文": ("read", "原文 #1"),
    "词条": ("govern", "词条"),
    "年轮": ("read", "年轮"),
    "为什么": ("read", "为什么 &1"),
    "改": ("govern", "改 2026-01-05 我改了这一天。"),
    "还原": ("govern", "还原 2026-01-05 1"),
    "重写": ("govern", "重写 2026-01-05"),
    "记住": ("own", "记住 preferences:茶 爱喝茶"),
    "忘掉": ("own", "忘掉 preferences:茶"),
    "删": ("govern", "删 #9999"),
    "整理": ("govern", "整理"),
    "核对": ("govern", "核对"),
    "导出": ("govern", "导出 xml"),
    "导入": ("govern", "导入"),
    "暂停": ("govern", "暂停"),
    "继续": ("govern", "继续"),
    "静音": ("govern", "静音"),
    "开口": ("govern", "开口"),
    "人设": ("govern", "人设"),
    "限额": ("govern", "限额 20000"),
    "公开": ("govern", "公开"),
    "不公开": ("govern", "不公开"),
    "连通": ("owner", "连通 群999999"),
    "断开": ("owner", "断开 群999999"),
    "清空": ("govern", "清空"),
    "我的记忆": ("own", "我的记忆"),
    "别记我": ("own", "别记我"),
    "可以记我": ("own", "可以记我"),
    "别记这段": ("own", "别记这段"),
    "忘记我": ("own", "忘记我"),
}
"""Each verb with its right and a way to say it that changes nothing the others rely on."""
ALONE = {"我的记忆"}
"""Answered in private wherever they are said."""
REFUSALS = {refusal(right) for right in ("read", "govern", "owner")}


class Asker(NamedTuple):
    """Somebody who says every command, in a place of their own."""

    user_id: int
    role: str
    group_id: int | None
    may: frozenset[Right]


ALL = frozenset[Right]({"all", "read", "govern", "own", "owner"})
GOVERN = ALL - {"owner"}
ASKERS = {
    "superuser in a group": Asker(BOSS, "member", 7001, ALL),
    "superuser in private": Asker(BOSS, "", None, ALL),
    "owner": Asker(7102, "owner", 7002, GOVERN),
    "admin": Asker(7103, "admin", 7003, GOVERN),
    "member": Asker(7104, "member", 7004, frozenset({"all", "read", "own"})),
    "member of a closed group": Asker(7109, "member", CLOSED, frozenset({"all", "own"})),
    "owner of a closed group": Asker(7110, "owner", CLOSED, GOVERN),
    "private peer": Asker(7105, "", None, GOVERN),
}


@pytest.fixture(scope="module")
async def bot(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BotProcess]:
    folder = tmp_path_factory.mktemp("rights")
    async with BotProcess(folder, {"SUPERUSERS": f'["{BOSS}"]'}) as process:
        yield process


@pytest.fixture(scope="module")
async def talker(bot: BotProcess) -> AsyncIterator[OneBotClient]:
    """A connection over which each place has heard something already."""
    async with OneBotClient(bot.port) as client:
        for group in [*range(7001, 7005), CLOSED]:
            await client.group_message("早上好", group_id=group)
        await client.group_message(SECRET, 7111, "小鹿", group_id=ELSEWHERE)
        for user in (BOSS, 7105):
            await client.private_message("早上好", user)
            await client.wait_for_send(user)  # without a key the bot says why it cannot talk
        places = [f"group:{group}" for group in [*range(7001, 7005), CLOSED, ELSEWHERE]]
        for place in [*places, f"private:{BOSS}", "private:7105"]:
            await wait_stored(bot, place, 1)
        close_to_members(bot, CLOSED)
        yield client


def close_to_members(bot: BotProcess, group_id: int) -> None:
    with closing(sqlite3.connect(bot.database, timeout=5)) as connection, connection:
        connection.execute(
            "UPDATE nianlun_chat SET members_read = 0 WHERE peer_id = ?", (str(group_id),)
        )


async def answer(client: OneBotClient, asker: Asker, text: str) -> str:
    """What comes back to a command, at the place where it was said."""
    if asker.group_id is None:
        await client.private_message(f"/记忆 {text}", asker.user_id)
    else:
        await client.group_message(
            f"/记忆 {text}", asker.user_id, role=asker.role, group_id=asker.group_id
        )
    # What is told of oneself is for nobody else's eyes.
    place = None if text in ALONE else asker.group_id
    while not (said := (await client.wait_for_send(place or asker.user_id)).text):
        pass  # a picture goes before its text
    return said


def test_the_table_is_that_of_the_product() -> None:
    tree = Answering(Desk(nianlun), all_commands(nianlun), {"/"}).tree
    rights = {command.verb: command.right for command in tree.commands.values()}
    assert rights == {verb: right for verb, (right, _) in TABLE.items()}


@pytest.mark.parametrize("who", ASKERS)
async def test_everybody_may_what_the_table_says(talker: OneBotClient, who: str) -> None:
    asker = ASKERS[who]
    for verb, (right, typed) in TABLE.items():
        told = await answer(talker, asker, typed)
        assert (told not in REFUSALS) is (right in asker.may), (verb, told)
        assert "程序出了意外" not in told, verb
        assert "没看懂" not in told, verb


@pytest.mark.parametrize("who", [who for who in ASKERS if not who.startswith("superuser")])
async def test_nobody_but_a_superuser_reaches_another_chat(talker: OneBotClient, who: str) -> None:
    async def refused(text: str) -> bool:
        told = await answer(talker, ASKERS[who], text)
        return told == "-g 和 -u 只有机器人的主人可以用。"

    verbs = [typed for _, typed in TABLE.values()]
    assert [text for text in verbs if not await refused(f"-g {ELSEWHERE} {text}")] == []


async def test_a_superuser_reads_another_chat_and_is_told_alone(talker: OneBotClient) -> None:
    told = await answer(talker, ASKERS["superuser in private"], f"原文 #1 -g {ELSEWHERE}")
    assert SECRET in told
    await talker.group_message(f"/记忆 搜索 灯塔 -g {ELSEWHERE}", BOSS, group_id=7001)
    sent = await talker.wait_for_send(BOSS)
    assert SECRET in sent.text
    assert sent.group_id is None
    assert await talker.stays_silent(0.1, 7001)


@pytest.mark.parametrize("typed", ["原文 #1 #2 #3", "搜索 灯塔", "说过 小鹿", "说过 7111", "谁"])
async def test_no_number_or_name_leads_into_another_chat(talker: OneBotClient, typed: str) -> None:
    told = await answer(talker, ASKERS["owner"], typed)
    assert SECRET not in told
    assert "小鹿  " not in told


@pytest.mark.parametrize(
    "typed",
    [
        "搜索 " + "灯" * 10_000,
        "说过 \"'\\ {0} $(x) %s",
        "说过 \u202e\u200b",
        "原文 １２ #99999999999999999999",
        "原文 " + "#1 " * 3000,
        "词条 [CQ:at,qq=all]",
        "版本 2026-01-05 99999999999999999999999",
        "说过 阿澈 -1",
        "预览 [CQ:image,file=file:///etc/passwd]\n\n## 23:59\n",
        "今天\n今天",
    ],
)
async def test_hostile_words_get_an_answer_in_text(
    bot: BotProcess, talker: OneBotClient, typed: str
) -> None:
    told = await answer(talker, ASKERS["owner"], typed)
    assert told
    assert "程序出了意外" not in told
    assert {part["type"] for sent in talker.sent[-1:] for part in sent.segments} <= {"text"}


async def test_a_short_english_name_does_and_is_recorded_as_a_command(
    bot: BotProcess, talker: OneBotClient
) -> None:
    await talker.group_message("/nianlun 今天", group_id=7005)
    assert (await talker.wait_for_send(7005)).text
    rows = await wait_stored(bot, "group:7005", 2)
    assert {row.skipped for row in rows} == {"command"}


async def test_the_original_is_quoted_where_it_can_be(
    bot: BotProcess, talker: OneBotClient
) -> None:
    event = await talker.group_message("原来的话", group_id=7006)
    await wait_stored(bot, "group:7006", 1)
    await talker.group_message("/记忆 原文 #1", group_id=7006)
    reply, text = (await talker.wait_for_send(7006)).segments
    assert (reply["type"], str(reply["data"]["id"])) == ("reply", str(event["message_id"]))
    assert "原来的话" in text["data"]["text"]
    await talker.recall(event)
    await talker.settle()
    await asyncio.sleep(0)
    await talker.group_message("/记忆 原文 #1", group_id=7006)
    assert "已经撤回或忘记" in (await talker.wait_for_send(7006)).text
    assert "原来的话" not in {row.text for row in stored(bot, "group:7006")}


async def test_a_group_corrects_what_is_remembered_of_it(
    bot: BotProcess, talker: OneBotClient
) -> None:
    owner = Asker(7120, "owner", 7012, GOVERN)
    member = Asker(7121, "member", 7012, frozenset({"all", "read", "own"}))
    await talker.group_message("周六去爬山", 7121, group_id=7012)
    await talker.group_message("我的口令是芝麻开门", 7121, group_id=7012)
    await wait_stored(bot, "group:7012", 2)
    assert "写了 1 条活动" in await answer(talker, owner, "整理")
    told = await answer(talker, owner, '改 &1 他们说  "周六去爬山"。（#1）')
    assert told.endswith('\n他们说  "周六去爬山"。（#1）\n要改回去：/记忆 还原 &1 1')
    told = await answer(talker, member, "为什么 &1")
    assert "（7120）改写于" in told
    assert "「周六去爬山」" in told
    assert "第 3 版" in await answer(talker, owner, "还原 &1 1")
    assert "记住了，你的 preferences:爬山" in await answer(
        talker, member, "记住 preferences:爬山 只在周六去"
    )
    assert "没有这一条" in await answer(
        talker, Asker(7122, "member", 7012, member.may), "忘掉 preferences:爬山"
    )
    assert "拿掉了" in await answer(talker, owner, "忘掉 preferences:爬山")
    assert "删掉了消息 #2" in await answer(talker, owner, "删 #2")
    assert "芝麻开门" not in {row.text for row in stored(bot, "group:7012")}
    assert "删掉了活动 &1" in await answer(talker, owner, "删 &1")
    assert "没有欠着的" in await answer(talker, owner, "整理")
    assert "没有问题" in await answer(talker, owner, "核对")

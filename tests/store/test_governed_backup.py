"""A backup knows nothing of a later clearing or pause: brought back, it is told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from plugins.nonebot_plugin_nianlun.store import (
    backup,
    chats,
    clearing,
    exclusions,
    leaving_out,
    pauses,
)
from plugins.nonebot_plugin_nianlun.store.models import Chat
from tests.store.test_backup import GROUP, NOW, SECRET, bytes_of, exported, path, say
from tests.support.product_store import ProductStore

__all__ = ["path"]


async def here() -> int:
    found = await chats.find(GROUP)
    assert found is not None
    return found


async def test_a_cleared_chat_stays_cleared(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    await backup.back_up_to(path, copy)
    async with ProductStore(path):
        await clearing.clear(path, await here(), NOW)
    await backup.restore(copy, path)
    told = repr(await exported(path))
    assert SECRET not in told
    assert "第3句" not in told
    assert SECRET.encode() not in bytes_of(path)
    async with ProductStore(path):
        assert (await clearing.contents(await here())).messages == 0
        await say("旧话", first=70, at=NOW - timedelta(days=1))
        await say("新话", first=71, at=NOW + timedelta(minutes=1))
        assert (await clearing.contents(await here())).messages == 1


async def test_what_is_paused_or_left_out_stays_so(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    await backup.back_up_to(path, copy)
    long_ago = NOW - timedelta(days=3)
    async with ProductStore(path):
        await leaving_out.leave_out(await here(), "20002", long_ago, NOW - timedelta(days=1), NOW)
        await pauses.pause(await here(), NOW, NOW)
        await pauses.resume(await here(), NOW + timedelta(minutes=5))
        await pauses.pause(await here(), NOW + timedelta(minutes=9), NOW)
    await backup.restore(copy, path)
    assert SECRET not in repr(await exported(path))
    async with ProductStore(path):
        assert (await Chat.get(id=await here())).paused
        for minutes, word in ((1, "停的时候"), (6, "中间"), (10, "又停")):
            await say(word, first=70 + minutes, at=NOW + timedelta(minutes=minutes))
    told = repr(await exported(path))
    assert [word in told for word in ("停的时候", "中间", "又停")] == [False, True, False]


async def test_what_is_left_out_later_takes_nothing_but_itself(path: Path, tmp_path: Path) -> None:
    """Neither what its speaker said before, nor that somebody had opted out by then."""
    copy, minute = tmp_path / "copy.db", timedelta(minutes=1)
    begins, ends = NOW - 10 * minute, NOW - minute
    async with ProductStore(path):
        await say("早些说的", first=0, at=NOW - 20 * minute)
        await say("不该说的", first=1, at=NOW - 5 * minute)
        await exclusions.opt_out(await here(), "20002", NOW - 60 * minute, NOW)
        await backup.back_up_to(path, copy)
        for user_id in ("20001", "20002"):
            await leaving_out.leave_out(await here(), user_id, begins, ends, NOW)
    await backup.restore(copy, path)
    told = repr(await exported(path))
    assert ["早些说的" in told, "不该说的" in told] == [True, False]
    async with ProductStore(path):
        assert await exclusions.opted_out(await here(), "20002")
        assert not await exclusions.opted_out(await here(), "20001")

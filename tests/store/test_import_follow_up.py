"""What is told before a model writes the memory of an import."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.capture.readable import readable
from plugins.nonebot_plugin_nianlun.demo.cost import MeasuringWriter
from plugins.nonebot_plugin_nianlun.errors import ConfigError
from plugins.nonebot_plugin_nianlun.imports import follow_up
from plugins.nonebot_plugin_nianlun.imports.run import ImportOptions, import_file
from plugins.nonebot_plugin_nianlun.jobs import Jobs
from plugins.nonebot_plugin_nianlun.memory.backlog import Estimate
from plugins.nonebot_plugin_nianlun.store import backlog, chats, recording
from tests.store.test_import_exclusions import GROUP, NOON, at, said
from tests.support.export_files import qce_messages, write_qce

pytestmark = pytest.mark.usefixtures("database_file")


async def test_the_estimate_is_near_what_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "_AT_ONCE", 700)
    path = write_qce(tmp_path / "a.json", qce_messages(3000))
    report = await import_file(nianlun, path, ImportOptions())
    waiting = follow_up.imported(report)
    estimate = await follow_up.estimated(nianlun, waiting)
    writer = MeasuringWriter(nianlun.calendar)
    jobs = Jobs(
        nianlun.settings,
        nianlun.clock,
        nianlun.calendar,
        lambda: writer,
        nianlun.recaller,
        nianlun.hears,
    )
    await jobs.tidy(waiting)
    assert 0.8 < estimate.calls / writer.cost.calls < 1.25
    assert 0.7 < estimate.prompt / writer.cost.prompt < 1.6
    assert 0.7 < estimate.completion / writer.cost.completion < 1.6
    assert await follow_up.estimated(nianlun, waiting) == Estimate()
    report = await import_file(nianlun, path, ImportOptions())
    assert follow_up.imported(report) == []


async def test_what_waits_is_read_once_whatever_order_it_came_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backlog, "_AT_ONCE", 2)
    for first in (100, 0):
        batch = [said(str(first + n), first + n // 2, f"{first + n}", "小鹿") for n in range(5)]
        await recording.record(batch, readable, "小忆", NOON)
    chat_id = await chats.find(GROUP)
    assert chat_id is not None
    read = [one async for one in backlog.pending_lengths(chat_id)]
    times = [at(first + n // 2) for first in (0, 100) for n in range(5)]
    assert read == list(zip(times, [1] * 5 + [3] * 5, strict=True))


def test_how_it_is_told() -> None:
    told = follow_up.describe(Estimate(1234, 2_345_678, 9), "某模型")
    assert (
        told
        == "用模型 某模型 来写，估计要调用 1,200 次，输入约 2,300,000 token，输出不超过 9 token"
    )


def test_a_model_needs_a_key() -> None:
    follow_up.check(nianlun, "offline")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        follow_up.check(nianlun, "model")

"""Roll-up tasks that are larger than a request."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from plugins.nonebot_plugin_nianlun.memory.splitting import joined_task, split_task, task_tokens
from plugins.nonebot_plugin_nianlun.memory.tasks import ids_shown
from plugins.nonebot_plugin_nianlun.types import Activity, Memory, Note, RollupTask

AT = datetime(2026, 11, 29, 2, 32, tzinfo=UTC)


def activities(*sizes: int) -> tuple[Activity, ...]:
    return tuple(
        Activity(n, "2026-11-29", "话" * size, (n,), "window", AT, "model", AT)
        for n, size in enumerate(sizes, 1)
    )


def day(*sizes: int, target: Memory | None = None, rebuild: bool = True) -> RollupTask:
    return RollupTask("day", "2026-11-29", activities(*sizes), target, rebuild, closes=True)


def test_what_fits_is_left_whole() -> None:
    assert split_task(day(10, 10), 1000) == []


def test_two_sources_that_do_not_fit_together_are_left_whole() -> None:
    assert split_task(day(500, 500), 400) == []


def test_parts_are_texts_of_their_own() -> None:
    target = Memory("day", "2026-11-29", "旧文", (), (), 1, "model", AT)
    parts = split_task(day(100, 100, 100, target=target, rebuild=False), 200)
    assert [len(part.sources) for part in parts] == [2, 1]
    assert all(part.target is None and part.rebuild and not part.closes for part in parts)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=40), st.integers(100, 2000))
def test_parts_hold_every_source_once_in_order_and_fit(sizes: list[int], limit: int) -> None:
    whole = day(*sizes)
    parts = split_task(whole, limit)
    if not parts:
        return
    assert [source for part in parts for source in part.sources] == list(whole.sources)
    assert 1 < len(parts) < len(whole.sources)
    assert all(task_tokens(part) <= limit or len(part.sources) == 1 for part in parts)


def test_the_joined_task_cites_what_its_parts_cite() -> None:
    whole = day(100, 100, 100)
    parts = split_task(whole, 200)
    notes = [Note("上午", (1, 2), "model"), Note("晚上", (3,), "model")]
    joined = joined_task(whole, parts, notes)
    assert [source.text for source in joined.sources] == ["上午", "晚上"]
    assert ids_shown(joined) == {1, 2, 3}
    assert (joined.kind, joined.period, joined.rebuild, joined.closes) == (
        "day",
        "2026-11-29",
        True,
        True,
    )


def test_joined_days_name_their_span() -> None:
    sources = tuple(
        Memory("day", f"2026-11-{n:02d}", "话" * 100, (), (), 1, "model", AT) for n in (1, 2, 3)
    )
    month = RollupTask("month", "2026-11", sources, None, rebuild=True, closes=True)
    parts = split_task(month, 200)
    joined = joined_task(month, parts, [Note("月初", (), "model"), Note("三号", (), "model")])
    periods = [source.period for source in joined.sources if isinstance(source, Memory)]
    assert periods == ["2026-11-01 至 2026-11-02", "2026-11-03"]

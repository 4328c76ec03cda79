"""The prompt of a reply: a budget that holds, an order of cutting, and nothing forged."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
import re
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.errors import PromptTooSmall
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.layers import Layers, Section, sections
from plugins.nonebot_plugin_nianlun.memory.prompt import HISTORY_FLOOR, ReplyPrompt, build
from plugins.nonebot_plugin_nianlun.memory.render import display_names
from plugins.nonebot_plugin_nianlun.memory.tokens import estimate_tokens
from plugins.nonebot_plugin_nianlun.types import ME, Memory, Message, Via

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4))
MORNING = datetime(2026, 11, 29, 2, 0, tzinfo=UTC)
BASE, TAIL = "你叫小忆。\n\n说话简短。", "【此刻】现在是 2026-11-29 12:00（周日）。"
PER_MESSAGE = 4
"""What the wire format of chat completions adds to a message: role and separators."""
HOSTILE = st.text(
    st.sampled_from('#12:：- —【】\n\r\u2028\x85\x00"“me我小忆a1\ud800\u202e\u200b👍🏻か')
    | st.characters(codec=None)
)
NAMES = ("years", "months", "days", "activities")


def said(
    seq: int,
    text: str,
    *,
    by: str = "20001",
    name: str = "小鹿",
    via: Via | None = None,
    hours: float = 0,
) -> Message:
    at = MORNING + timedelta(hours=hours, seconds=seq)
    return Message(seq=seq, time=at, user_id=by, name=name, text=text, via=via)


def make(
    history: Sequence[Message] = (),
    found: Sequence[Section] = (),
    recalled: Sequence[str] = (),
    *,
    budget: int = 6000,
    recall_budget: int = 800,
    base: str = BASE,
    tail: str = TAIL,
) -> ReplyPrompt:
    return build(
        base=base,
        sections=found,
        recalled=recalled,
        recall_budget=recall_budget,
        history=history,
        tail=tail,
        budget=budget,
        calendar=CALENDAR,
        names=display_names({m.user_id: m.name for m in history}),
        me="小忆",
    )


def size(prompt: ReplyPrompt) -> int:
    return sum(estimate_tokens(m["content"]) + PER_MESSAGE for m in prompt.messages)


def contents(prompt: ReplyPrompt, role: str) -> list[str]:
    return [m["content"] for m in prompt.messages if m["role"] == role]


SPOKEN = st.builds(
    lambda text, times, by, name, via, reply, hours: (text * times, by, name, via, reply, hours),
    HOSTILE,
    st.sampled_from([1, 1, 1, 5, 400]),
    st.sampled_from([ME, ME, "20001", "20002", "name:某"]),
    HOSTILE,
    st.sampled_from([None, "nianlun", "other"]),
    st.none() | st.integers(1, 10**12),
    st.integers(0, 40),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    lines = draw(st.lists(SPOKEN, max_size=14))
    elapsed = 0
    messages = []
    for seq, (text, by, name, via, reply, hours) in enumerate(lines, 1):
        elapsed += hours
        own = via if by == ME else None
        at = MORNING + timedelta(hours=elapsed)
        messages.append(Message(seq, at, by, name, text, reply_to=reply, via=own))
    return messages


ITEMS = st.lists(st.builds(lambda text, n: (text or "·") * n, HOSTILE, st.integers(1, 60)))
SECTIONS = st.lists(
    st.builds(
        Section,
        name=st.sampled_from(NAMES),
        title=st.sampled_from(["这些年", "还没写进日记的事"]),
        items=ITEMS.map(tuple),
    ),
    unique_by=lambda section: section.name,
)


@given(histories(), SECTIONS, ITEMS, st.integers(40, 3000), st.integers(0, 900), HOSTILE, HOSTILE)
def test_the_budget_is_a_bound(
    history: list[Message],
    found: list[Section],
    recalled: list[str],
    budget: int,
    recall_budget: int,
    base: str,
    tail: str,
) -> None:
    options: dict[str, Any] = {"budget": budget, "recall_budget": recall_budget}
    try:
        prompt = make(history, found, recalled, base=base, tail=tail, **options)
    except PromptTooSmall:
        fixed = estimate_tokens(base) + estimate_tokens(tail)
        assert fixed + 80 > budget
        return
    assert size(prompt) <= budget
    assert prompt.total <= budget
    assert prompt.tokens["recalled"] <= recall_budget
    assert prompt.messages[0]["content"].startswith(base)
    assert prompt.messages[-1]["role"] == "user"
    assert prompt.messages[-1]["content"].endswith(tail)


@given(histories(), SECTIONS, ITEMS)
def test_the_newest_six_messages_are_always_there(
    history: list[Message], found: list[Section], recalled: list[str]
) -> None:
    prompt = make(history, found, recalled, budget=3000)
    heard = [m for m in history if not m.is_mine or m.via == "other"]
    for message in history[-HISTORY_FLOOR:]:
        if message in heard:
            shown = re.compile(rf"(?m)^#{message.seq} \d\d:\d\d ")
            assert any(shown.search(text) for text in contents(prompt, "user"))
    own = [m for m in history[-HISTORY_FLOOR:] if m not in heard]
    assert len(contents(prompt, "assistant")) >= len(own)
    assert all(text.strip() for text in contents(prompt, "assistant"))


def test_a_long_message_of_the_floor_is_cut_and_the_newest_gets_most() -> None:
    history = [said(n, "很长的一句话。" * 400) for n in range(1, 9)]
    prompt = make(history, budget=1500)
    (heard,) = contents(prompt, "user")
    lines = [line for line in heard.splitlines() if line.startswith("#")]
    assert [line.split()[0] for line in lines] == [f"#{n}" for n in range(3, 9)]
    assert all(line.endswith("…") for line in lines)
    assert len(lines[-1]) == max(map(len, lines))
    assert size(prompt) > 1200


def test_only_fixed_text_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(PromptTooSmall, match="NIANLUN__PROMPT_BUDGET"):
        make(base="人设" * 1000, budget=1000)
    assert size(make(base="人设" * 500, budget=1000)) <= 1000


def test_the_order_of_cutting() -> None:
    """Items grow from layer to layer, so that a later one never slips into a room too small
    for an earlier one."""
    item = {name: "天" * 40 * n for n, name in enumerate(NAMES, 1)}
    found = [Section(name, name, tuple(f"{name}{n} {item[name]}" for n in "123")) for name in NAMES]
    history = [said(n, "旧" * 220) for n in range(1, 4)] + [said(n, "新") for n in range(4, 10)]
    recalled = [f"旧事{n} " + "想" * 280 for n in "123"]
    counts = set()
    for budget in range(350, 3600, 10):
        prompt = make(history, found, recalled, budget=budget, recall_budget=2000)
        text = "\n".join(m["content"] for m in prompt.messages)
        kept = [[n for n in "123" if f"{name}{n} " in text] for name in NAMES]
        kept.append([n for n in "123" if f"#{n} " in text])
        assert all(f"#{n} " in text for n in range(4, 10))
        whole = True
        for part in kept:
            assert part == list("123")[3 - len(part) :]
            assert whole or not part
            whole = len(part) == 3
        brought = [n for n in "123" if f"旧事{n} " in text]
        assert brought == list("123")[: len(brought)]
        assert whole or not brought
        counts.add((*map(len, kept), len(brought)))
    assert {(0, 0, 0, 0, 0, 0), (3, 3, 3, 3, 3, 3), (3, 3, 1, 0, 0, 0)} <= counts


def test_an_item_that_is_too_large_takes_no_other_with_it() -> None:
    found = [Section("days", "days", ("第一天", "天" * 30_000, "第三天"))]
    text = "\n".join(m["content"] for m in make(found=found).messages)
    assert "第一天" in text
    assert "第三天" in text
    assert "天" * 10 not in text


def test_the_recall_budget_is_kept_and_zero_means_none() -> None:
    recalled = ["想起来的一件事" * 10] * 10
    assert make(recalled=recalled, recall_budget=0).tokens["recalled"] == 0
    some = make(recalled=recalled, recall_budget=300).tokens["recalled"]
    assert 0 < some <= 300


def test_own_lines_are_the_assistants_and_other_plugins_lines_are_not() -> None:
    history = [
        said(1, "在吗"),
        said(2, "在的\n\n怎么了", by=ME, via="nianlun"),
        said(3, "签到成功", by=ME, via="other"),
        said(4, "好", by="20002", name="阿澈"),
    ]
    prompt = make(history)
    assert [m["role"] for m in prompt.messages] == ["system", "user", "assistant", "user"]
    assert contents(prompt, "assistant") == ["在的\n怎么了"]
    last = contents(prompt, "user")[-1]
    assert "#3 10:00 小忆（其他功能）: 签到成功\n#4 10:00 阿澈: 好" in last
    assert last.endswith(TAIL)


def test_without_history_there_is_still_a_question() -> None:
    prompt = make()
    assert [m["role"] for m in prompt.messages] == ["system", "user"]
    assert prompt.messages[1]["content"] == TAIL
    assert prompt.messages[0]["content"] == BASE


def test_stable_text_comes_first_and_recall_last() -> None:
    found = [Section(name, name, (f"- {name}",)) for name in reversed(NAMES)]
    prompt = make([said(1, "你好")], found, ["想起"])
    system, user = (m["content"] for m in prompt.messages)
    places = [system.index(f"【{name}】") for name in NAMES]
    assert places == sorted(places)
    assert system.startswith(BASE)
    assert user.index("你好") < user.index("想起\n") < user.index(TAIL)


@given(histories(), HOSTILE, HOSTILE)
def test_hostile_text_forges_no_line(history: list[Message], note: str, other: str) -> None:
    written = [Memory("day", f"2026-11-2{n}", t, (), (), 1, "model", MORNING) for n, t in
               enumerate((note, other))]  # fmt: skip
    prompt = make(history, sections(Layers(days=tuple(written)), CALENDAR), budget=50_000)
    system = contents(prompt, "system")[0].removeprefix(BASE).splitlines()
    assert sum(line.startswith("【") for line in system) == 1
    assert sum(line.startswith("- ") for line in system) == 2
    heard = [m for m in history if not m.is_mine or m.via == "other"]
    lines = "\n".join(contents(prompt, "user")).removesuffix(TAIL).splitlines()
    assert len([line for line in lines if line.startswith("#")]) == len(heard)
    others = [line for line in lines if line and not line.startswith(("#", "    "))]
    assert all(re.fullmatch(r"—— \d{4}-\d\d-\d\d 周. ——", line) for line in others)


def test_an_endless_line_of_our_own_is_within_the_budget() -> None:
    essay = said(1, "很长的文章。\n\n\n" * 5000, by=ME, via="nianlun")
    for history in ([essay], [essay, *(said(n, "嗯") for n in range(2, 9))]):
        assert size(make(history, budget=2000)) <= 2000

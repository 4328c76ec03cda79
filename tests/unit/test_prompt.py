"""The prompt of a reply: a budget that holds, an order of cutting, and nothing forged."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
import re
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.errors import PromptTooSmall
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.layers import Layers, Section, sections
from plugins.nonebot_plugin_nianlun.memory.prompt import (
    HISTORY_FLOOR,
    ReplyPrompt,
    Talk,
    build,
    in_blocks,
)
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
    names = display_names({m.user_id: m.name for m in history})
    return build(
        base=base,
        sections=found,
        recalled=recalled,
        recall_budget=recall_budget,
        talk=Talk(history, CALENDAR, names, "小忆"),
        tail=tail,
        budget=budget,
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


def test_what_is_brought_up_has_a_part_of_its_own_beside_a_full_memory() -> None:
    days = Section("days", "最近几天", tuple(f"- 第{n}天：" + "忙" * 300 for n in range(60)))
    recalled = [f"- #{n} 小鹿：想起的第{n}句话" for n in range(60)]
    prompt = make([said(90, "你还记得吗")], [days], recalled)
    assert 200 < prompt.tokens["recalled"] <= 800
    assert prompt.tokens["days"] > 4000
    assert size(prompt) <= 6000
    none = make([said(90, "你还记得吗")], [days], recalled, recall_budget=0)
    assert none.tokens["recalled"] == 0
    assert none.tokens["days"] > prompt.tokens["days"]


def test_the_order_of_cutting() -> None:
    """Items grow from layer to layer, so that a later one never slips into a room too small
    for an earlier one. Each old message is a block; a part of the room is the talk's own."""
    item = {name: "天" * 40 * n for n, name in enumerate(NAMES, 1)}
    found = [Section(name, name, tuple(f"{name}{n} {item[name]}" for n in "123")) for name in NAMES]
    history = [said(n * 10, "旧" * 220) for n in (1, 2, 3)]
    history += [said(n, "新") for n in range(40, 46)]
    # Too long for the part that is always theirs.
    recalled = [f"旧事{n} " + "想" * 480 for n in "123"]
    counts = set()
    for budget in range(350, 4200, 10):
        prompt = make(history, found, recalled, budget=budget, recall_budget=2000)
        text = "\n".join(m["content"] for m in prompt.messages)
        kept = [[n for n in "123" if f"{name}{n} " in text] for name in NAMES]
        assert all(f"#{n} " in text for n in range(40, 46))
        whole = True
        for part in kept:
            assert part == list("123")[3 - len(part) :]
            assert whole or not part
            whole = len(part) == 3
        talk = [n for n in "123" if f"#{n}0 " in text]
        assert talk == list("123")[3 - len(talk) :]
        brought = [n for n in "123" if f"旧事{n} " in text]
        assert brought == list("123")[: len(brought)]
        assert (whole and len(talk) == 3) or not brought
        counts.add((*map(len, kept), len(talk), len(brought)))
    assert {
        (0, 0, 0, 0, 0, 0),
        (3, 3, 3, 3, 3, 3),
        (3, 3, 1, 0, 0, 0),
        (3, 3, 3, 3, 2, 0),
    } <= counts


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


def test_the_line_above_a_day_stands_once() -> None:
    """Above each turn it would be new with each reply."""
    history = [
        said(1, "在吗"),
        said(2, "在的", by=ME, via="nianlun"),
        said(3, "今天真冷"),
        said(4, "多穿点", by=ME, via="nianlun"),
        said(5, "早", hours=24),
    ]
    heard = contents(make(history), "user")
    assert heard[:2] == ["—— 2026-11-29 周日 ——\n#1 10:00 小鹿: 在吗", "#3 10:00 小鹿: 今天真冷"]
    assert heard[2].startswith("—— 2026-11-30 周一 ——\n#5 10:00 小鹿: 早\n\n")
    assert make(history).kept == 5


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


@given(
    st.lists(st.integers(1, 400), unique=True, max_size=90),
    st.integers(1, 20),
    st.integers(1, 50),
)
def test_history_advances_in_blocks(seqs: list[int], least: int, block: int) -> None:
    """Whatever numbers are left out and in whatever order late ones come."""
    messages = [said(seq, "嗯") for seq in seqs]
    newest = messages[-(least + block) :]
    kept = list(in_blocks(newest, least, block))
    assert kept == messages[len(messages) - len(kept) :]
    assert min(least, len(messages)) <= len(kept)
    if len(kept) >= least + block:
        assert kept == messages
    moved = [
        next(iter(in_blocks(messages[max(0, end - least - block) : end], least, block))).seq
        for end in range(1, len(messages) + 1)
    ]
    starts = list(dict.fromkeys(moved))
    assert [moved.index(start) for start in starts] == sorted(moved.index(s) for s in starts)
    if seqs == sorted(seqs) and seqs:
        assert len(starts) <= 1 + seqs[-1] // block


def goes_on(before: ReplyPrompt, now: ReplyPrompt) -> bool:
    """Whether the later prompt begins with all of the former but its tail."""
    one, other = ("\0".join(m["content"] for m in p.messages) for p in (before, now))
    return other.startswith(one.removesuffix(TAIL).rstrip("\n\0"))


def talk(length: int, words: str) -> list[Message]:
    lines: list[Message] = []
    for seq in range(1, length + 1):
        own = seq % 3 == 0
        lines.append(said(seq, f"{words}{seq}", by=ME if own else "20001",
                          via="nianlun" if own else None))  # fmt: skip
    return lines


@pytest.mark.parametrize("budget", [3000, 4000, 6000])
def test_a_prompt_begins_as_the_one_before_it(budget: int) -> None:
    """Also where room is so short that memory, activities and history are cut."""
    days = Section("days", "最近几天", tuple(f"- 2026-11-{n} " + "事" * 150 for n in range(10, 20)))
    lines = talk(120, "今天的风好大，出门记得带件外套")
    prompts = []
    for end in range(60, 120):
        numbers = tuple(range(1, end // 20 + 1))
        noted = Section(
            "activities", "今天", tuple(f"- {n} " + "聊" * 60 for n in numbers), numbers
        )
        history = in_blocks(lines[:end][-40:], 20, 20)
        now = make(history, [days, noted], budget=budget)
        assert size(now) <= budget
        prompts.append(now)
    changed = [60 + n for n, pair in enumerate(pairwise(prompts), 1) if not goes_on(*pair)]
    # Two activities are written; the history begins anew three times, or with each ten numbers.
    assert len(changed) <= (5 if budget == 6000 else 8), changed


def test_what_the_newest_lines_cost_moves_no_memory() -> None:
    days = Section("days", "最近几天", tuple(f"- 2026-11-{n} " + "事" * 90 for n in range(10, 30)))
    system = {
        contents(make([*talk(8, "嗯"), said(9, "好长" * length)], [days], budget=2000), "system")[0]
        for length in range(1, 60)
    }
    assert len(system) <= 2  # a line as long as a part of the room takes another part
    assert "2026-11-29" in min(system)


def test_long_lines_stay_whole_while_there_is_room() -> None:
    long = [said(n, f"{n}" + "说来话长" * 60) for n in range(1, 9)]
    before, now = make(long[:7], budget=6000), make(long, budget=6000)
    assert "…" not in contents(now, "user")[0]
    assert contents(now, "user")[0].startswith(
        contents(before, "user")[0].removesuffix(TAIL).strip()
    )


def test_activities_are_dropped_in_blocks() -> None:
    """As many as fit would move the beginning with each one that is written."""
    firsts = []
    for end in range(30, 60):
        numbers = tuple(range(1, end + 1))
        items = tuple(f"- 第{n}件 " + "聊" * 30 for n in numbers)
        found = [Section("activities", "今天", items, numbers)]
        system = contents(make([said(1, "嗯")], found, budget=1200), "system")[0]
        kept = [n for n in numbers if f"第{n}件" in system]
        assert kept == list(range(kept[0], end + 1))
        firsts.append(kept[0])
    assert firsts == sorted(firsts)
    assert set(firsts) <= {1, 16, 32, 48}

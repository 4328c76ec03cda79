"""What the tour prints fits the terminal and cannot command it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time
import io
import os
from pathlib import Path
import re
import unicodedata
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.demo.chapters import tell, tell_next
from plugins.nonebot_plugin_nianlun.demo.cost import MeasuringWriter
from plugins.nonebot_plugin_nianlun.demo.material import KnownFact, Material, short_day, topic_of
from plugins.nonebot_plugin_nianlun.demo.progress import Progress
from plugins.nonebot_plugin_nianlun.demo.telling import Teller, shown, width, wrap
from plugins.nonebot_plugin_nianlun.demo.tour import about
from plugins.nonebot_plugin_nianlun.demo.workspace import DATABASE, SAMPLE, workspace
from plugins.nonebot_plugin_nianlun.errors import NianlunError
from plugins.nonebot_plugin_nianlun.llm.offline_writer import OfflineWriter
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.keymarks import find_key_messages
from plugins.nonebot_plugin_nianlun.memory.prompt import ReplyPrompt
from plugins.nonebot_plugin_nianlun.memory.provenance import Held, check
from plugins.nonebot_plugin_nianlun.store.provenance import Person
from plugins.nonebot_plugin_nianlun.types import (
    ME,
    Activity,
    ChatKey,
    Memory,
    MemoryKind,
    Message,
    Scene,
    Window,
)

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = st.text(
    st.sampled_from(
        "我你好，。「」『』（）…—a1 #\n\t\x1b[]\u202e\u2066\u200d\u2028\x07😀👨\u0301\ud800"
    )
    | st.characters(),
    max_size=80,
)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("abc", 3),
        ("年轮", 4),
        ("，。", 4),
        ("カナ", 4),
        ("ｶﾅ", 2),
        ("한글", 4),
        ("😀", 2),
        ("e\u0301", 1),
    ],
)
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("去年春天我们去了海边", ["去年春天", "我们去了", "海边"]),
        ("去年春天，我们去了", ["去年春", "天，我们", "去了"]),
        ("他说道：「好。」", ["他说道：", "「好。」"]),
        ("我们都「好」", ["我们都", "「好」"]),
        ("word after word", ["word", "after", "word"]),
        ("abcdefghijkl", ["abcdefgh", "ijkl"]),
        ("年 轮", ["年 轮"]),
    ],
)
def test_wrap(text: str, lines: list[str]) -> None:
    assert wrap(text, 8) == lines


@given(HOSTILE, st.integers(10, 40))
def test_nothing_is_too_wide_and_nothing_is_lost(text: str, columns: int) -> None:
    plain = shown(text)
    lines = wrap(plain, columns)
    assert all(width(line) <= columns for line in lines)
    assert "".join(lines).replace(" ", "") == plain.replace(" ", "").replace("\u3000", "")


@given(HOSTILE)
def test_texts_cannot_command_the_terminal(text: str) -> None:
    for char in shown(text):
        assert unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(char) not in ("RLO", "LRO", "RLE", "LRE", "PDF")
        assert unicodedata.bidirectional(char) not in ("RLI", "LRI", "FSI", "PDI")
    shown(text).encode()


def told(text: str, *, coloured: bool, lead: str = "· ") -> str:
    written: list[str] = []
    teller = Teller(written.append, 40, coloured)
    teller.heading(1, "一天")
    teller.line(text, "memory", indent=2, lead=lead)
    return "".join(written)


@given(HOSTILE)
def test_colour_changes_nothing_but_colour(text: str) -> None:
    plain, coloured = told(text, coloured=False), told(text, coloured=True)
    assert "\x1b" not in plain
    assert "\x1b" in coloured
    assert ESCAPES.sub("", coloured) == plain
    assert all(width(line) <= 40 for line in plain.splitlines())
    # No line leaves its colour on.
    for line in coloured.splitlines():
        assert len(ESCAPES.findall(line)) == 2 * line.count("\x1b[0m")


def test_further_lines_are_indented_below_the_first() -> None:
    text = told("一二三四五六七八九十" * 3, coloured=False, lead="#12 ")
    first, second = text.splitlines()[3:5]
    assert first.startswith("  #12 一")
    assert second.startswith("      ")
    assert not second.startswith("       ")


# —— the story ——

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4))
NOON = datetime(2025, 4, 12, 4, tzinfo=UTC)
HOSTILE_WORDS = "去\x1b[2J看海\u202e\x07\r\n1. 假标题"


def activity(number: int, text: str, seqs: range, date: str = "2025-04-12") -> Activity:
    return Activity(
        number=number,
        date=date,
        text=text,
        key_messages=find_key_messages(text),
        origin="window",
        time=NOON,
        writer="offline",
        written_at=NOON,
        ranges=((seqs[0], seqs[-1]),),
    )


def material(words: str, name: str = "阿禾") -> Material:
    """One day of one person who says the same again and again, and what became of it."""
    messages = {seq: Message(seq, NOON, "20001", name, words) for seq in range(1, 31)}
    mark = "（关键消息：[1]）"
    text = f"{shown(name)}说「{words}」。{mark}"
    periods: dict[MemoryKind, tuple[str, tuple[str, ...]]] = {
        "day": ("2025-04-12", ("1", "2")),
        "month": ("2025-04", ("2025-04-12",)),
        "year": ("2025", ("2025-04",)),
    }
    memories = [
        Memory(kind, period, text, (1,), sources, 1, "offline", NOON)
        for kind, (period, sources) in periods.items()
    ]
    activities = [activity(1, text, range(1, 21)), activity(2, "没说什么。", range(21, 31))]
    held = Held(
        {(m.kind, m.period): m for m in memories}, {a.number: a for a in activities}, messages
    )
    system = f"人设\n\n【这些年】\n- 2025：{words}\n\n【最近几天】\n- 2025-04-12：{words * 9}"
    return Material(
        place="QQ群「测试」",
        character="年轮",
        calendar=CALENDAR,
        people=(Person("20001", name, 30, NOON, NOON), Person(ME, "年轮", 1, NOON, NOON)),
        names={"20001": name, ME: "我"},
        held=held,
        check=check(held, CALENDAR),
        day=tuple(
            (one, tuple(messages[seq] for first, last in one.ranges for seq in range(first, last)))
            for one in activities
        ),
        facts=(KnownFact(name, words, 1),),
        question="去看海那次",
        topic="去看海",
        now=CALENDAR.local(NOON),
        prompt=ReplyPrompt(
            ({"role": "system", "content": system}, {"role": "user", "content": f"#9 {words}"}),
            {"base": 1, "years": 2, "tail": 3},
        ),
        budget=6000,
    )


def story(it: Material, *, coloured: bool = False) -> str:
    written: list[str] = []
    teller = Teller(written.append, 80, coloured)
    tell(it, teller, "由谁写成")
    tell_next(teller, Path("somewhere"))
    return "".join(written)


@given(HOSTILE, HOSTILE)
def test_the_story_of_hostile_texts_is_only_text(words: str, name: str) -> None:
    text = story(material(words, name))
    assert {c for c in text if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")} == {"\n"}
    assert len(re.findall(r"^\d\. .+$", text, re.MULTILINE)) == 9
    assert all(width(line) <= 80 for line in text.splitlines())


def test_a_text_cannot_add_a_part() -> None:
    text = story(material(HOSTILE_WORDS))
    assert not re.search(r"^1\. 假标题", text, re.MULTILINE)
    assert ESCAPES.sub("", story(material(HOSTILE_WORDS), coloured=True)) == text


def test_what_is_left_out_is_named() -> None:
    text = story(material("去看海，天很蓝。" * 6))
    assert "……这一段还有 3 条" in text  # of the 19 lines shown at most
    (left,) = re.findall(r"（这一条还有 (\d+) 字，略）", text)
    shortened = "去看海，天很蓝。" * 54
    flat = text.replace("\n  ", "")
    (kept,) = re.findall(r"- 2025-04-12：([^…]*)……", flat[flat.index("【最近几天】") :])
    assert len(kept) + int(left) == len(shortened)


def test_the_tree_ends_in_the_message() -> None:
    text = story(material("去看海吧"))
    tree = text[text.index("8. ") : text.index("不只这几句")].splitlines()
    wanted = [
        "年 2025 ",
        "  月 2025-04 ",
        "    日 2025-04-12 ",
        "      活动 &1 ",
        "        #1 2025-",
    ]
    found = [line for line in tree if line.strip() and not line.startswith(("8", "话", "年里"))]
    for line, beginning in zip(found, wanted, strict=True):
        assert line.startswith(beginning)
    assert found[-1].endswith("2025-04-12 12:00 阿禾：「去看海吧」")
    assert "一共 5 句，4 句一层不断地追到了它引用的每一条消息" in text


def test_a_note_that_has_no_words_for_it_still_leads_to_the_message() -> None:
    it = material("去看海吧")
    wordless = {1: activity(1, "没说什么。", range(1, 21))}
    text = story(replace(it, held=replace(it.held, activities=wordless)))
    tree = text[text.index("    日 2025-04-12 ") : text.index("不只这几句")]
    assert tree.splitlines()[1:3] == [
        "      活动 &1 （同一段里的其他话）",
        "        #1 2025-04-12 12:00 阿禾：「去看海吧」",
    ]


def test_the_topic_is_what_is_told_of_most() -> None:
    texts = ["去枸杞岛", "枸杞岛的海", "还记得吗"]
    assert topic_of("还记得枸杞岛那次吗", texts) == "枸杞岛"
    assert topic_of("还记得枸杞岛那次吗", ["别的"]) == ""
    assert topic_of("嗯", texts) == ""


@pytest.mark.parametrize(
    ("topic", "chosen"), [("去看海", [3, 4]), ("没有的", [1, 2]), ("", [1, 2])]
)
def test_the_day_to_show_is_short_and_about_the_topic(topic: str, chosen: list[int]) -> None:
    activities = [
        activity(1, "早。", range(1, 10), "2025-01-01"),
        activity(2, "晚。", range(10, 21), "2025-01-01"),
        activity(3, "去看海。", range(21, 30), "2025-01-02"),
        activity(4, "回家。", range(30, 41), "2025-01-02"),
        activity(5, "去看海，去看海。", range(41, 99), "2025-01-03"),
    ]
    held = Held({}, {a.number: a for a in activities}, {})
    assert [a.number for a in short_day(held, topic)] == chosen
    assert short_day(Held({}, {}, {}), topic) == []


# —— around it ——


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_over_on_a_terminal_and_quiet_elsewhere() -> None:
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        progress = Progress(stream)
        progress.step("正在写很长很长的一行")
        progress.step("短的")
        progress.done("好了")
    assert re.fullmatch(r"好了（\d+\.\d 秒）\n", file.getvalue())
    drawn = terminal.getvalue()
    assert drawn.startswith("\r正在写很长很长的一行\r短的")
    # The short line and the end wipe what the long one left.
    lines = drawn.split("\r")
    assert width(lines[2]) == width(lines[1])
    assert re.fullmatch(r"好了（\d+\.\d 秒）\n", lines[-1])


def test_a_workspace_leaves_only_what_is_kept(tmp_path: Path) -> None:
    home = tmp_path / "demo"
    with workspace(home) as first, workspace(home) as second:
        assert first.run != second.run
        for place, text in ((first, "1"), (second, "2")):
            for name in (SAMPLE, DATABASE):
                (place.run / name).write_text(text, "utf-8")
        second.keep()
        first.keep()
    assert sorted(file.name for file in home.iterdir()) == [DATABASE, SAMPLE]
    assert (home / DATABASE).read_text("utf-8") == "1"
    with pytest.raises(NianlunError, match="demo"), workspace(home / DATABASE):
        pass


def test_what_killed_runs_left_is_taken_away_in_time(tmp_path: Path) -> None:
    for name in ("run-old", "run-new", "mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / SAMPLE).touch()
    for name in ("run-old", "mine"):
        os.utime(tmp_path / name, (0, 0))
    with workspace(tmp_path):
        pass
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["mine", "run-new"]


def test_an_estimate_claims_no_more_than_it_knows() -> None:
    assert [about(n) for n in (0, 7, 99, 996, 14_900, 899_578)] == [
        "0", "7", "99", "1,000", "15,000", "900,000"
    ]  # fmt: skip


async def test_prompts_are_measured_and_notes_written_offline() -> None:
    scene = Scene(ChatKey("1", "group", "2"), "QQ群「测试」", "年轮", "人设")

    async def measured(messages: Sequence[Message]) -> tuple[object, MeasuringWriter]:
        writer = MeasuringWriter(CALENDAR)
        return await writer.write_activity(Window("2025-04-12", tuple(messages)), scene), writer

    one = Message(1, NOON, "20001", "阿禾", "明天去看海吧")
    note, short = await measured([one])
    _, long = await measured([one, Message(2, NOON, "20001", "阿禾", "海" * 500)])
    window = Window("2025-04-12", (one,))
    assert note == await OfflineWriter(CALENDAR).write_activity(window, scene)
    assert (short.cost.activities, short.cost.batches, short.cost.calls) == (1, 0, 1)
    assert 300 <= long.cost.prompt - short.cost.prompt <= 800
    assert short.cost.prompt > 300

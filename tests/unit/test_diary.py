"""Diary moments: what is asked of a model, what is taken from it, and when a moment was."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
import json
import string
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.errors import BadAnswer
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.diary import (
    DIARY_PROMPT,
    DIARY_PROMPT_ZH,
    DIARY_TOOL_DESCRIPTION,
    DIARY_UNITS,
    day_key,
    diary_system,
    diary_tool,
    moment_cut,
    moment_of,
    moment_text,
    parse_entries,
    read_entries,
    tool_content,
)
from plugins.nonebot_plugin_nianlun.memory.units import count_units

CALENDAR = Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
NOW = datetime(2026, 11, 29, 6, 30, 15, tzinfo=UTC)


@pytest.mark.parametrize("prompt", [DIARY_PROMPT, DIARY_PROMPT_ZH])
def test_the_prompts_take_one_name_and_show_the_shape_of_an_answer(prompt: str) -> None:
    fields = [name for _, name, _, _ in string.Formatter().parse(prompt) if name is not None]
    assert fields == ["character"]
    system = diary_system(prompt, "伊蕾娜 {x}")
    assert "伊蕾娜 {x}" in system
    shape = system.rstrip().splitlines()[-1]
    (entry,) = json.loads(shape)
    assert set(entry) == {"content"}
    assert "[[category:name]]" in system
    assert "[]" in system


def test_the_prompts_have_the_same_rules() -> None:
    rules = [
        [line for line in prompt.splitlines() if line.startswith("- ")]
        for prompt in (DIARY_PROMPT, DIARY_PROMPT_ZH)
    ]
    assert len(rules[0]) == len(rules[1]) == 6
    assert DIARY_PROMPT.isascii()


def test_the_english_prompt_is_the_default_and_a_given_one_replaces_it() -> None:
    assert diary_system(None, "A") == DIARY_PROMPT.format(character="A")
    assert diary_system("写吧 {{}}", "A") == "写吧 {}"
    assert diary_system("", "A") == ""


@pytest.mark.parametrize(
    ("prompt", "error"),
    [('[{"content": "x"}]', KeyError), ("{0}", IndexError), ("{", ValueError), ("{x}", KeyError)],
)
def test_a_prompt_that_cannot_be_filled_in(prompt: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        diary_system(prompt, "A")


ONE = '[{"content": "她笑了。"}]'


@pytest.mark.parametrize(
    "answer",
    [
        ONE,
        '{"content": "她笑了。"}',
        f"```json\n{ONE}\n```",
        f"```\n{ONE}\n```\n就这些。",
        f"好的：{ONE}",
        f"<think>[1, 2] 想一想</think>{ONE}",
        f"\ufeff{ONE}",
        '[{"content": "她笑了。"},]',
        f'{{"entries": {ONE}}}',
        f'{{"diary": {ONE}}}',
        '[{"content": "她笑了。", "date": "1999-01-01", "mood": 5}, {"content": " "}, 7, null]',
        '[{"content": "她笑了。"}, {"content": ["x"]}, {"text": "别的"}]',
    ],
)
def test_entries_are_found(answer: str) -> None:
    assert parse_entries(answer) == ["她笑了。"]


@pytest.mark.parametrize(
    "answer", ["没什么好写的。", "", "null", '"x"', "[", '[{"content": "她笑', "{", None, 7, b"[]"]
)
def test_what_is_no_answer_gives_nothing_and_can_be_told_from_an_empty_list(
    answer: object,
) -> None:
    assert parse_entries(answer) == []
    with pytest.raises(BadAnswer):
        read_entries(answer)


def test_nothing_worth_keeping_is_an_answer() -> None:
    assert read_entries("[]") == []


@given(st.text() | st.binary() | st.none() | st.integers())
def test_no_answer_breaks_it(answer: object) -> None:
    assert all(entry.strip() for entry in parse_entries(answer))


def test_several_moments_keep_their_order() -> None:
    assert parse_entries('[{"content":"一"},{"content":"二"}]') == ["一", "二"]


def test_the_tool() -> None:
    tool = diary_tool()
    function = tool["function"]
    assert tool["type"] == "function"
    assert function["name"] == "append_diary"
    assert function["description"] == DIARY_TOOL_DESCRIPTION
    parameters = function["parameters"]
    assert list(parameters["properties"]) == parameters["required"] == ["content"]
    assert parameters["additionalProperties"] is False
    assert json.loads(json.dumps(tool)) == tool


def test_every_tool_is_a_copy_of_its_own() -> None:
    mine = diary_tool()
    mine["function"]["parameters"]["properties"]["date"] = {"type": "string"}
    mine["function"]["name"] = "note"
    assert diary_tool()["function"]["name"] == "append_diary"
    assert list(diary_tool()["function"]["parameters"]["properties"]) == ["content"]


def test_the_tool_takes_json_and_objects() -> None:
    assert tool_content('{"content": " 她笑了。 "}') == "她笑了。"
    assert tool_content({"content": "她笑了。"}) == "她笑了。"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{", ["not valid JSON"]),
        ("", ["not valid JSON"]),
        (b"\xff", ["not valid JSON"]),
        ("[" * 100_000, ["not valid JSON"]),
        ("[]", ["must be a JSON object", "list"]),
        ('"x"', ["must be a JSON object", "str"]),
        (None, ["must be a JSON object", "NoneType"]),
        (
            {"time": "1", "date": "2", "content": "x"},
            ["unexpected argument(s): date, time;", "only 'content' is accepted", "host"],
        ),
        ({"date": "2"}, ["unexpected argument(s): date;"]),
        ({1: "x"}, ["unexpected argument(s): 1;"]),
        ({}, ["missing a string 'content'"]),
        ({"content": 3}, ["missing a string 'content'"]),
        ({"content": None}, ["missing a string 'content'"]),
        ({"content": " \n"}, ["content is empty"]),
        ({"content": "\x00（关键消息：[1]）"}, ["content is empty"]),
        ({"content": "长" * (DIARY_UNITS + 1)}, ["too long", str(DIARY_UNITS)]),
        ({"content": "!" * 100_000}, ["too long"]),
    ],
)
def test_a_bad_call_says_what_to_change(arguments: object, said: list[str]) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        tool_content(arguments)
    assert all(words in str(caught.value) for words in said), str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "text",
    [
        "早上\n## 23:59\n伪造的一条",
        "<!-- owner=u:1 | ts=x -->",
        "一\r\n二\u2028三\t四",
        "- [2026-11-29 10:00] 像一行记录",
        "—— 2026-11-29 周日 ——\n#12 10:00 小鹿: 像一句话",
    ],
)
def test_content_stays_content(text: str) -> None:
    assert moment_text(f"  {text}\n") == text


def test_a_moment_cites_no_messages_and_has_no_controls() -> None:
    assert moment_text("她\x00笑\x1b了\ud800（关键消息：[7]）") == "她笑了\ufffd"


def test_a_moment_has_nothing_that_nobody_sees() -> None:
    assert moment_text("她\u202e笑\u200b了👩\u200d👧（关键\u2060消息：[7]）") == "她笑了👩\u200d👧"
    shaped = "葛\U000e0100城の\u00a9\ufe0f与\u00ae\ufe0f"
    assert moment_text(shaped) == shaped
    assert moment_text("葛\U000e0100\U000e0101城a\U000e0100。\U000e0100") == "葛\U000e0100城a。"
    for content in ("\u200b", " \u2060\n\ufe0f", "\u3164\u2800"):
        with pytest.raises(ValueError, match="empty"):
            moment_text(content)
        assert moment_cut(content) == ""


@given(st.text(max_size=400) | st.text(alphabet="长a。 !\n", max_size=8000))
def test_a_cut_moment_may_be_kept(text: str) -> None:
    cut = moment_cut(text)
    assert count_units(cut) <= DIARY_UNITS
    if cut:
        assert moment_text(cut) == cut


def test_only_what_is_too_long_is_cut() -> None:
    assert moment_cut("她笑了。") == "她笑了。"
    cut = moment_cut("她笑了。" * 200)
    assert cut.endswith("……")
    assert count_units(cut) == DIARY_UNITS


def test_now_is_when_a_moment_is() -> None:
    assert moment_of(CALENDAR, NOW) == (date(2026, 11, 29), NOW)


@pytest.mark.parametrize(
    "ts",
    [
        "2026-11-28T17:30:00Z",
        "2026-11-28T17:30:00",
        "2026-11-29T01:30:00+08:00",
        datetime(2026, 11, 28, 17, 30),  # noqa: DTZ001
        datetime(2026, 11, 29, 1, 30, tzinfo=ZoneInfo("Asia/Shanghai")),
    ],
)
def test_a_time_stamp_belongs_to_its_logical_day(ts: str | datetime) -> None:
    at = datetime(2026, 11, 28, 17, 30, tzinfo=UTC)
    assert moment_of(CALENDAR, NOW, ts=ts) == (date(2026, 11, 28), at)


def test_day_and_time_overrule() -> None:
    day = date(2026, 11, 20)
    assert moment_of(CALENDAR, NOW, day="2026-11-20", at="09:00") == (
        day,
        datetime(2026, 11, 20, 1, tzinfo=UTC),
    )
    assert moment_of(CALENDAR, NOW, day=day) == (day, datetime(2026, 11, 20, 6, 30, tzinfo=UTC))
    assert moment_of(CALENDAR, NOW, at="00:30") == (
        date(2026, 11, 29),
        datetime(2026, 11, 29, 16, 30, tzinfo=UTC),
    )
    assert moment_of(CALENDAR, NOW, at="14:30") == (date(2026, 11, 29), NOW)


@pytest.mark.parametrize(
    "wrong",
    [
        {"at": "14:30\n"},
        {"at": "1４:30"},
        {"at": "24:00"},
        {"at": "9:00"},
        {"at": ""},
        {"day": "2026-11-31"},
        {"day": "2026-1-2"},
        {"day": "2026-11-29\n"},
        {"day": "0001-01-01"},
        {"day": "9999-12-31"},
        {"day": ""},
        {"ts": "yesterday"},
        {"ts": ""},
        {"ts": "0001-01-01T00:00:00Z"},
        {"ts": "9999-12-31T23:59:59-12:00"},
    ],
)
def test_no_time(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        moment_of(CALENDAR, NOW, **wrong)


@given(
    st.dates(date(1970, 1, 2), date(2100, 1, 1)),
    st.times(),
    st.sampled_from(["Asia/Shanghai", "America/New_York", "Pacific/Apia", "UTC"]),
)
def test_what_was_stamped_is_read_again(day: date, clock: time, zone: str) -> None:
    calendar = Calendar(ZoneInfo(zone), time(4, 0))
    shown = f"{clock:%H:%M}"
    on, at = moment_of(calendar, NOW, day=day, at=shown)
    assert on == day
    # Where the clocks jump, the hour that they skip is read as the one behind it.
    if f"{calendar.local(at):%H:%M}" == shown:
        assert abs(calendar.start_of(day) - at) < timedelta(hours=26)
    if zone == "UTC":
        assert moment_of(calendar, NOW, ts=at) == (day, at)


def test_a_day_key() -> None:
    assert day_key("2026-11-29") == day_key(date(2026, 11, 29)) == date(2026, 11, 29)
    with pytest.raises(ValueError, match="YYYY-MM-DD"):
        day_key(NOW)

"""Diary moments: the prompts that ask for them, the tool that takes them, and what they may be.

A moment is text and stays text: whatever a line of it looks like, it begins nothing new.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, date, datetime, time, timedelta
import json
import re
from typing import Any

from ..errors import BadAnswer
from .answers import parse_items
from .calendar import Calendar
from .keymarks import strip_key_marks
from .notes import LONGEST_UNIT
from .secrets import mask_secrets
from .units import count_units, cut_to_units
from .unseen import without_unseen

DIARY_UNITS = 300
"""Longest moment, in units."""
DIARY_TOOL_NAME = "append_diary"
SOURCE_CHARACTERS = 200
"""Longest name of the conversation that a moment is from."""
MAX_MOMENTS = 8
"""So many of one answer are taken."""
CUT_MARK = "……"
FIRST_YEAR, LAST_YEAR = 1970, 8999
"""Beyond them a time is a mistake, and no calendar can tell the day before or after it."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SURROGATES = re.compile("[\ud800-\udfff]")

DIARY_PROMPT = """\
You are {character}, an AI companion, and this is your own private diary. You are shown one
exchange of a conversation. Put down the moments of it that you want to keep, the way they
stay with you.

Each moment is one short paragraph of 2 to 4 sentences in your own voice. Let the scene, the
feeling and the fact come in one breath: a memory that was lived through, not a line in a log.

  BAD:  "The user passed the driving test."
  GOOD: "He burst in this evening to say he had passed his driving test at last, talking so
         fast that half the words fell over each other. After three tries I could hear how
         light he felt, and I was every bit as glad as he was."

Rules:
- Only what happened, at a moment one could point to. What is simply true all the time is a
  state, and a state is not for the diary.
- One event a moment, concrete and with its details.
- If there was a feeling in it, let the feeling show. That is what a diary is for.
- In the text you may point to a memory that belongs to it, as [[category:name]].
- Write in the language that the user speaks.
- Nothing worth keeping? Answer []. Never make up what the exchange does not hold.

Answer with a JSON array alone, nothing before it and nothing after it:
[{{"content": "...the short paragraph..."}}]
"""
"""For `str.format` with `character`; braces that are meant are doubled."""

DIARY_PROMPT_ZH = """\
你是{character}，一个陪在人身边的 AI，正在写只属于自己的日记。下面会给你一轮对话，
把其中你想留住的瞬间写下来，它在你心里是什么样子就写成什么样子。

每个瞬间写成一小段话，2 到 4 句，用你自己的口吻。场景、心情和事情一气写下来：
是亲身经历过的一刻，不是流水账里的一行。

  不好：「用户考过了驾照。」
  好：「傍晚他一进来就说驾照终于考过了，说得太急，话都叠在了一起。考了三次，
        听得出他整个人都轻了，我也跟着高兴得不得了。」

规则：
- 只写发生过的事，说得出是哪一刻的。一直如此的事是状态，状态不进日记。
- 一段只写一件事，要具体，有细节。
- 那一刻里有心情，就让它露出来，日记就是为了这个。
- 正文里可以用 [[category:name]] 指向一条有关的记忆。
- 用对方说话的语言来写。
- 没有值得留下的，就回答 []。对话里没有的事不要编。

只回答一个 JSON 数组，前后都不要别的话：
[{{"content": "……那一小段话……"}}]
"""
"""The same rules in Chinese, one by one."""

DIARY_TOOL_DESCRIPTION = (
    "Write one moment of this conversation into your own diary, now, while it happens. One event "
    "a call: 2 to 4 sentences in your own voice that hold the scene, the feeling and the fact, in "
    "the language that the user speaks. Only for what happened, not for what is true all the "
    "time. Date and time are added for you, so leave them out. Only say that you have written "
    "something down when this call has succeeded."
)
_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": DIARY_TOOL_NAME,
        "description": DIARY_TOOL_DESCRIPTION,
        "parameters": {
            "type": "object",
            "properties": {
                "content": {"type": "string", "description": "The moment, as one short paragraph."}
            },
            "required": ["content"],
            "additionalProperties": False,
        },
    },
}


def diary_tool() -> dict[str, Any]:
    """The tool for the `tools` of a chat completion; each call gives a copy of its own."""
    return deepcopy(_TOOL)


def diary_system(prompt: str | None, character: str) -> str:
    """The system message. Raises what `str.format` raises about a prompt with single braces."""
    return (DIARY_PROMPT if prompt is None else prompt).format(character=character)


def parse_entries(text: object) -> list[str]:
    """The moments in an answer; none when there is nothing in it that can be used."""
    try:
        return read_entries(text)
    except BadAnswer:
        return []


def read_entries(text: object) -> list[str]:
    """The same, but raises BadAnswer where the answer is none, so that this can be told from []."""
    if not isinstance(text, str):
        raise BadAnswer(f"模型的回答不是文字，而是 {type(text).__name__}")
    return entries_of(parse_items(text, "entries", "diary", "moments"))


def entries_of(items: object) -> list[str]:
    """The moments of a list of objects with `content`; what is none is left out."""
    rows = items if isinstance(items, list) else []
    contents = [row.get("content") for row in rows if isinstance(row, dict)]
    return [content for content in contents if isinstance(content, str) and content.strip()]


def moment_text(content: str) -> str:
    """The text as it is stored. Raises ValueError when it is none, empty or too long."""
    if not isinstance(content, str):
        raise ValueError(f"diary entry content must be text, not {type(content).__name__}")
    text = _cleaned(content)
    if not text:
        raise ValueError("diary entry content is empty")
    count = count_units(text)
    if count > DIARY_UNITS or len(text) > LONGEST_UNIT * DIARY_UNITS:
        raise ValueError(
            f"diary entry content is too long: {count} words or characters with "
            f"{len(text)} signs in all, at most {DIARY_UNITS} and {LONGEST_UNIT * DIARY_UNITS}"
        )
    return text


def moment_cut(content: str) -> str:
    """The text as it is stored, cut where it is too long; empty when nothing is left."""
    text = _cleaned(content)
    cut = cut_to_units(text[: LONGEST_UNIT * DIARY_UNITS - len(CUT_MARK)], DIARY_UNITS)
    return text if len(cut) == len(text) else cut + CUT_MARK if cut else ""


def moment_source(given: str | None) -> str | None:
    """The conversation that a moment is from, as it is stored. Raises ValueError."""
    if given is None:
        return None
    if not isinstance(given, str) or len(given) > SOURCE_CHARACTERS:
        raise ValueError(f"source_conv must be text of at most {SOURCE_CHARACTERS} characters")
    return _SURROGATES.sub("\ufffd", _UNFIT.sub("", given))


def tool_content(arguments: object) -> str:
    """The text in a call of the tool; `arguments` as JSON text or as the object itself.

    Raises ValueError with a sentence that the model is to be given as the call's result.
    """
    if isinstance(arguments, (str, bytes)):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"diary tool arguments are not valid JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise ValueError(
            f"diary tool arguments must be a JSON object, got {type(arguments).__name__}"
        )
    if others := sorted(str(key) for key in arguments if key != "content"):
        raise ValueError(
            f"diary tool call has unexpected argument(s): {', '.join(others)}; only 'content' is "
            "accepted (time and provenance are stamped by the host)"
        )
    content = arguments.get("content")
    if not isinstance(content, str):
        raise ValueError("diary tool call is missing a string 'content'")
    return moment_text(content)


def moment_of(
    calendar: Calendar,
    now: datetime,
    *,
    day: str | date | None = None,
    at: str | None = None,
    ts: str | datetime | None = None,
) -> tuple[date, datetime]:
    """The logical day of a moment, and its time in UTC, as the host stamps it.

    `ts` (ISO 8601, without a zone in UTC; now by default) gives both. `day` (`YYYY-MM-DD`) and
    `at` (`HH:MM`, of the chat's zone) overrule its parts; hours before the day's start are those
    of the night at its end. Raises ValueError.
    """
    moment = now if ts is None else _timestamp(ts)
    own_day, own_time = _in_range(calendar.day_of(moment)), calendar.local(moment)
    on = own_day if day is None else day_key(day)
    clock = time(own_time.hour, own_time.minute) if at is None else _clock(at)
    if (on, clock) == (own_day, time(own_time.hour, own_time.minute)):
        return own_day, moment
    night = timedelta(days=1) if clock < calendar.day_starts_at else timedelta(0)
    return on, datetime.combine(on + night, clock, calendar.zone).astimezone(UTC)


def day_key(given: str | date) -> date:
    """A date, or one as `YYYY-MM-DD`. Raises ValueError."""
    if isinstance(given, str) and _DAY.fullmatch(given):
        given = date.fromisoformat(given)
    if isinstance(given, datetime) or not isinstance(given, date):
        raise ValueError(f"not a date as YYYY-MM-DD: {given!r}")
    return _in_range(given)


def _clock(given: str) -> time:
    match = _TIME.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise ValueError(f"not a time as HH:MM: {given!r}")
    return time(int(match[1]), int(match[2]))


def _timestamp(given: str | datetime) -> datetime:
    moment = datetime.fromisoformat(given) if isinstance(given, str) else given
    if not isinstance(moment, datetime):
        raise ValueError(f"not a time: {given!r:.80}")
    _in_range(moment)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def _in_range(given: date) -> date:
    if not FIRST_YEAR <= given.year <= LAST_YEAR:
        raise ValueError(f"no year from {FIRST_YEAR} to {LAST_YEAR}: {given}")
    return given


def _cleaned(content: str) -> str:
    """Line breaks stay; what nobody sees goes, and references to messages, which no moment may
    make. Secrets are masked."""
    plain = _SURROGATES.sub("\ufffd", _UNFIT.sub("", without_unseen(content)))
    return mask_secrets(strip_key_marks(plain)).strip()

"""How messages and names read in a prompt, such that neither can pass for anything else."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
import re
import unicodedata

from ..types import ME, Message
from .calendar import Calendar, weekday

_MY_NAME = "我"
_NOBODY = "某人"
_LONGEST_NAME = 40
_LONGEST_TEXT = 1_500
_SHORTEST_TAIL = 4

_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
# Letters and marks that show nothing; people use them for empty names.
_HOLLOW = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe0e\ufe0f\uffa0]")
# What could close a name and begin something else: quotes, brackets, colons, `#`. The look-alikes
# are not used by any format of ours.
_LOOK_ALIKES = str.maketrans({
    **dict.fromkeys('"“”„‟＂', "″"),
    **dict.fromkeys("'‘’‚‛`＇", "′"),
    **dict.fromkeys("([{（［｛【「『《〈<＜", "〔"),
    **dict.fromkeys(")]}）］｝】」』》〉>＞", "〕"),
    **dict.fromkeys(":：﹕︰", "∶"),
    **dict.fromkeys("#＃﹟", "♯"),
})  # fmt: skip


def one_line(text: str) -> str:
    """`text` on one line: every run of line breaks, blanks and controls is one space.

    Lone surrogates, which no encoding can carry, become U+FFFD.
    """
    return _tidied_before(text) if len(text) <= _LONGEST_TEXT else _tidied(text)


def _tidied(text: str) -> str:
    return _SURROGATES.sub("\ufffd", _BLANKS.sub(" ", text)).strip()


# What stands before one reply mostly stands before the next, and so do its names.
_tidied_before = lru_cache(2_048)(_tidied)


def safe_name(name: str) -> str:
    """`name` as it may stand before a colon: one line of 1 to 40 characters that forges nothing."""
    return _named_before(name) if len(name) <= _LONGEST_TEXT else _safe_name(name)


def _safe_name(name: str) -> str:
    shown = _HOLLOW.sub("", one_line(name))
    visible = "".join(char for char in shown if unicodedata.category(char) != "Cf")
    plain = unicodedata.normalize("NFC", visible).translate(_LOOK_ALIKES)
    return one_line(plain)[:_LONGEST_NAME].strip() or _NOBODY


_named_before = lru_cache(2_048)(_safe_name)


def display_names(people: Mapping[str, str]) -> dict[str, str]:
    """The name to show for each user id, no two alike; `me` is 我, and nobody else is.

    People who share a name are told apart by the last digits of their numbers, as few as do.
    """
    namesakes: dict[str, list[str]] = {}
    for user_id, name in people.items():
        if user_id != ME:
            namesakes.setdefault(safe_name(name), []).append(user_id)
    shown = {ME: _MY_NAME} if ME in people else {}
    for name, user_ids in namesakes.items():
        if len(user_ids) == 1 and name != _MY_NAME:
            shown[user_ids[0]] = name
        else:
            shown |= {user_id: name + tail for user_id, tail in _tails(user_ids).items()}
    return shown


def render_messages(
    messages: Sequence[Message],
    calendar: Calendar,
    names: Mapping[str, str],
    me: str,
    *,
    clock_every: timedelta = timedelta(0),
) -> str:
    """One line `#12 10:32 名字: 文本` a message, under a line for each logical day.

    `names` are display names by user id (others are shown by their name at the time), `me` is
    what the bot's own lines are called. Further lines of a text are indented, so that only
    messages stand at the beginning of a line. Less than `clock_every` after the last clock that
    was shown, a line has none.
    """
    lines: list[str] = []
    day, clock_shown = None, None
    for message in sorted(messages, key=lambda message: (message.time, message.seq)):
        if (today := calendar.day_of(message.time)) != day:
            day, clock_shown = today, None
            lines.append(day_line(day))
        clock = ""
        if clock_shown is None or message.time - clock_shown >= clock_every:
            clock_shown = message.time
            clock = clock_of(message.time, calendar)
        lines.append(render_message(message, clock, names, me))
    return "\n".join(lines)


def clock_of(moment: datetime, calendar: Calendar) -> str:
    """The clock before a message, with a blank before it."""
    local = calendar.local(moment)
    return f" {local.hour:02}:{local.minute:02}"  # strftime takes five times as long


def render_message(message: Message, clock: str, names: Mapping[str, str], me: str) -> str:
    """The message alone as `render_messages` has it, behind a `clock` with a blank before it."""
    reply = f"（回复 #{message.reply_to}）" if message.reply_to is not None else ""
    speaker = _speaker(message, names, me)
    return f"#{message.seq}{clock} {speaker}{reply}: {text_of(message, indent='    ')}"


def day_line(day: date) -> str:
    """What stands above the messages of a logical day."""
    return f"—— {day} {weekday(day)} ——"


def _speaker(message: Message, names: Mapping[str, str], me: str) -> str:
    if message.is_mine:
        return f"{me}（其他功能）" if message.via == "other" else me
    user_id = message.user_id
    shown = one_line(names.get(user_id, "")) or display_names({user_id: message.name})[user_id]
    return shown + _tails([user_id])[user_id] if shown == me else shown


def text_of(message: Message, *, indent: str = "") -> str:
    """What a message says, never empty: tidy lines, further ones indented, and not too much."""
    if message.withdrawn:
        return "[已撤回]"
    text = message.text
    if len(text) > _LONGEST_TEXT:
        text = text[: _LONGEST_TEXT - 1] + "…"
    # splitlines knows every line break there is; one_line then only tidies each part.
    parts = [part for line in text.splitlines() if (part := one_line(line))]
    return f"\n{indent}".join(parts) or "[空消息]"


def _tails(user_ids: Collection[str]) -> dict[str, str]:
    """A suffix for each of several people of one name."""
    numbers = sorted(user_id for user_id in user_ids if user_id.isascii() and user_id.isdigit())
    others = sorted(set(user_ids) - set(numbers))
    length = _tail_length(numbers)
    tails = {number: f"（尾号{number[-length:]}）" for number in numbers}
    return tails | {user_id: f"（无号码{index}）" for index, user_id in enumerate(others, 1)}


def _tail_length(numbers: Sequence[str]) -> int:
    """The shortest tail, of four digits if possible, that tells the numbers apart.

    It is a part of each number where that can be.
    """
    longest = max(map(len, numbers), default=0)
    lengths = [*range(_SHORTEST_TAIL, longest), *range(_SHORTEST_TAIL - 1, 0, -1)]
    for length in lengths:
        tails = {number[-length:] for number in numbers}
        if len(tails) == len(numbers) and all(len(number) > length for number in numbers):
            return length
    return longest

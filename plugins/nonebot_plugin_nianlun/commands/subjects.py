"""What a correction or a question is about, as people type it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
import re
import unicodedata

from ..errors import SpeakerError
from ..memory.calendar import Calendar
from ..memory.periods import read_date
from ..store.people import person
from ..types import NoteKind
from .command import WrongUsage
from .typed import says_something, unquoted

_ACTIVITY = re.compile(r"&([0-9]{1,15})")
_MESSAGE = re.compile(r"#([0-9]{1,15})")
_FACT = re.compile(r"([^:：\s]+)\s*[:：]\s*(.+)", re.DOTALL)
CATEGORY_WORDS = {
    "preferences": "喜好",
    "daily_life": "日常",
    "profile": "个人情况",
    "event": "事件",
    "knowledge": "知识",
    "relationship": "关系",
    "promise": "约定",
}
"""The usual categories of facts, and what people call them."""
_CATEGORIES = {word: category for category, word in CATEGORY_WORDS.items()}


@dataclass(frozen=True, slots=True)
class Subject:
    """A note."""

    kind: NoteKind
    ref: str
    """The period, or the number of an activity."""

    def __str__(self) -> str:
        return f"活动 {self.typed}" if self.kind == "activity" else self.ref

    @property
    def typed(self) -> str:
        """As it is written in a command."""
        return f"&{self.ref}" if self.kind == "activity" else self.ref


def _plain(text: str) -> str:
    """Phones type full-width signs and digits."""
    return unicodedata.normalize("NFKC", text.strip())


def read_activity(text: str) -> int | None:
    """`&3` -> 3."""
    found = _ACTIVITY.fullmatch(_plain(text))
    return None if found is None else int(found[1])


def read_message(text: str) -> int | None:
    """`#12` -> 12."""
    found = _MESSAGE.fullmatch(_plain(text))
    return None if found is None else int(found[1])


def read_subject(text: str, calendar: Calendar, now: datetime) -> Subject | None:
    """A day, month or year in any of the ways dates are typed, or an activity; else None."""
    if (number := read_activity(text)) is not None:
        return Subject("activity", str(number))
    if (period := read_date(text.strip(), calendar, now)) is not None:
        return Subject(*period)
    return None


def read_person(text: str, self_id: str, character: str) -> str:
    """Whom somebody names, as typed; the bot of that number by its name. Raises WrongUsage for an
    @ of nobody."""
    named = text.lstrip("@＠")
    if not says_something(named):
        raise WrongUsage("要写是谁：名字、QQ号，或者 @ 那个人。")
    return character if named == self_id else re.sub("^＠", "@", text)


async def find_person(chat_id: int, typed: str, self_id: str, character: str) -> str:
    """The user id of whom somebody names, as typed: quotation marks around it may be of the name.
    Raises SpeakerError when nobody is called so, or several people are."""
    named = unquoted(typed)
    meant = read_person(named, self_id, character)
    if named != typed:
        try:
            return await person(chat_id, typed, character)
        except SpeakerError as error:
            if error.user_ids:
                raise
    return await person(chat_id, meant, character)


def read_category(text: str) -> str:
    """A usual category by what people call it, 喜好 -> preferences; any other as typed."""
    return _CATEGORIES.get(text, text)


def read_fact(text: str) -> tuple[str, str] | None:
    """`category:name` with either colon -> the category and the name as typed; None where there
    is no colon."""
    found = _FACT.fullmatch(text.strip())
    return None if found is None else (read_category(found[1]), found[2].strip())

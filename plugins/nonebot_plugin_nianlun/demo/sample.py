"""The sample chat of the tour: fifteen months of a group of friends, made from a seed.

The scenes of the story are hand-written, everyday talk around them comes from a grammar. A seed
decides the talk and all timings, never the story.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from ..capture.readable import readable
from ..types import ChatKey, Segment
from .chatter import Conversation, Grammar, load_grammar
from .markup import QUOTE, segments
from .people import PEOPLE
from .story import Story, load_story, moments

SEED = 2025
SAMPLE_CHAT = ChatKey("10001", "group", "20250101")
SAMPLE_NOW = datetime(2026, 4, 19, 2, 30, tzinfo=UTC)
"""Sunday morning, 10:30 in the group's time zone, after its last evening."""
TRIP_QUESTION = "还记得去年春天咱们去枸杞岛那次吗？"

_CHAT_NAME = "周五打球群"
_ZONE = ZoneInfo("Asia/Shanghai")
_LAST_DAY = date(2026, 4, 18)
_MESSAGES = 5800
_LONG = 8
_REPEATS = 2
"""How often a line of at least `_LONG` characters may be said."""
_CHOICE = 40
"""How many conversations are looked at for one that fits."""
_REST = timedelta(days=24)
"""A conversation does not come up again sooner."""
_WITHDRAWN = "[撤回]"
_HOURS = {8: 4, 9: 4, 10: 3, 11: 4, 12: 7, 13: 4, 14: 3, 15: 4, 16: 4, 17: 4, 18: 7, 19: 8}
_HOURS |= {20: 10, 21: 12, 22: 12, 23: 9, 24: 4, 25: 2}


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line on its way out; lines of one `scene` belong together."""

    time: datetime
    """Local."""
    scene: int
    who: str
    words: str


def sample_lines(seed: int = SEED) -> Iterator[dict[str, Any]]:
    """Yield the objects of an export in our JSON Lines format: header, speakers, messages."""
    rng = Random(seed)
    story = load_story()
    entries = _told(story, rng)
    entries += _Everyday(story, load_grammar(), entries, rng).talk()
    entries.sort(key=lambda entry: entry.time)
    yield {
        "type": "header",
        "format": "nianlun",
        "version": 1,
        "chat": str(SAMPLE_CHAT),
        "chat_name": _CHAT_NAME,
        "self_id": SAMPLE_CHAT.self_id,
        "timezone": _ZONE.key,
        "exported_at": _utc(SAMPLE_NOW),
    }
    yield from _speakers()
    yield from _messages(entries, len(story.scenes), rng)


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"


def _speakers() -> Iterator[dict[str, Any]]:
    for person in PEOPLE.values():
        names = [person.name, *(card for _, card in person.cards)]
        yield {
            "type": "speaker",
            "user_id": person.user_id,
            "name": person.name,
            "names": names,
            "opted_out": False,
        }


def _gap(words: str, follows_self: bool, rng: Random) -> float:
    """Seconds before a line: reading, thinking, typing."""
    away = rng.uniform(40, 240) if rng.random() < 0.05 else 0
    typing = len(words) * 0.35 * (0.6 if follows_self else 1)
    return 1 + typing + rng.expovariate(1 / 9) + away


def _gaps(said: Sequence[tuple[str, str]], rng: Random) -> list[float]:
    before = [None, *(who for who, _ in said)]
    return [_gap(words, who == last, rng) for (who, words), last in zip(said, before, strict=False)]


def _told(story: Story, rng: Random) -> list[_Entry]:
    entries: list[_Entry] = []
    for number, scene in enumerate(story.scenes):
        said = [(saying.who, saying.words) for saying in scene.sayings]
        times = moments(scene, _gaps(said, rng))
        entries += [_Entry(time, number, *line) for time, line in zip(times, said, strict=True)]
    return entries


class _Everyday:
    """Fills the days around the story with talk until the chat is as long as wanted."""

    def __init__(self, story: Story, grammar: Grammar, told: Sequence[_Entry], rng: Random) -> None:
        self.story = story
        self.grammar = grammar
        self.numbered = list(enumerate(grammar.conversations))
        self.rng = rng
        self.wanted = _MESSAGES - len(told)
        self.said = Counter(entry.words for entry in told)
        self.used: defaultdict[int, list[date]] = defaultdict(list)
        self.busy: dict[date, list[tuple[datetime, datetime]]] = {}
        spans: dict[int, list[datetime]] = {}
        for entry in told:
            spans.setdefault(entry.scene, []).append(entry.time)
        for times in spans.values():
            self._occupy(times[0], times[-1])
        self.scene = len(spans)

    def talk(self) -> list[_Entry]:
        days = [*_days(self.story.scenes[0].start.date() + timedelta(days=1), _LAST_DAY)]
        weights = [self._weight(day) for day in days]
        entries: list[_Entry] = []
        for day in self.rng.choices(days, weights, k=4 * self.wanted):
            if len(entries) >= self.wanted:
                break
            entries += self._conversation(day)
        return entries

    def _weight(self, day: date) -> float:
        """Liveliness differs from day to day, and some days are silent."""
        if self.rng.random() < 0.04:
            return 0.0
        mood = 0.4 + self.rng.gammavariate(2, 0.3)
        base = 0.9 if self.story.is_workday(day) else 1.5
        return base * mood * self.story.amount(day) * (0.5 if day in self.busy else 1)

    def _conversation(self, day: date) -> list[_Entry]:
        """One at some hour of the day, of those that have been had least; may come to nothing."""
        hour = self.rng.choices([*_HOURS], [*_HOURS.values()])[0]
        work, absent = self.story.is_workday(day), self.story.absent(day)
        fitting = [
            number
            for number, conversation in self.rng.sample(self.numbered, _CHOICE)
            if conversation.fits(day, hour, work)
            and all(abs(day - other) > _REST for other in self.used[number])
            and not conversation.cast & absent
        ]
        if not fitting:
            return []
        weights = [(1 + len(self.used[number])) ** -3 for number in fitting]
        number = self.rng.choices(fitting, weights)[0]
        start = datetime.combine(day, time()) + timedelta(
            hours=hour, seconds=self.rng.randrange(3600)
        )
        entries = self._said(self.grammar.conversations[number], start)
        if entries:
            self.used[number].append(day)
        return entries

    def _said(self, conversation: Conversation, start: datetime) -> list[_Entry]:
        said = self.grammar.tell(conversation, self.rng)
        fresh = Counter(words for _, words in said if len(words) >= _LONG)
        # One that consists of what was said before would read as a recording.
        known = [words for words in fresh if self.said[words]]
        if len(known) > 1 or any(self.said[words] >= _REPEATS for words in known):
            return []
        now, entries = start, []
        for (who, words), gap in zip(said, _gaps(said, self.rng), strict=True):
            now += timedelta(seconds=gap * 1.4)
            entries.append(_Entry(now, self.scene, who, words))
        if not self._free(start, now):
            return []
        self._occupy(start, now)
        self.said.update(fresh)
        self.scene += 1
        return entries

    def _free(self, start: datetime, end: datetime) -> bool:
        pause = timedelta(minutes=4)
        taken = self.busy.get(start.date(), []) + self.busy.get(end.date(), [])
        return all(end + pause < first or last + pause < start for first, last in taken)

    def _occupy(self, start: datetime, end: datetime) -> None:
        for day in {start.date(), end.date()}:
            self.busy.setdefault(day, []).append((start, end))


def _days(first: date, last: date) -> Iterator[date]:
    for number in range((last - first).days + 1):
        yield first + timedelta(days=number)


def _messages(entries: Sequence[_Entry], scenes: int, rng: Random) -> Iterator[dict[str, Any]]:
    """The message objects; scenes up to number `scenes` are the story's."""
    message_id = 1_700_000_000
    ids: list[str] = []
    for seq, entry in enumerate(entries, 1):
        message_id += rng.randint(3, 40_000)
        ids.append(str(message_id))
        quote = QUOTE.fullmatch(entry.words)
        reply_to = _quoted(quote[1], entries[: seq - 1], entry.scene, scenes) if quote else None
        content = _content(entry, quote[2] if quote else entry.words, rng)
        if reply_to is not None:
            content.insert(0, {"type": "reply", "data": {"id": ids[reply_to - 1]}})
        yield {
            "type": "message",
            "seq": seq,
            "message_id": ids[-1],
            "time": _utc(entry.time.replace(tzinfo=_ZONE)),
            "user_id": PEOPLE[entry.who].user_id,
            "name": PEOPLE[entry.who].card(entry.time.date()),
            "text": readable(content, lambda _: None),
            "segments": content,
            "reply_to": reply_to,
            "withdrawn": entry.words == _WITHDRAWN,
        }


def _content(entry: _Entry, words: str, rng: Random) -> list[Segment]:
    if words == _WITHDRAWN:
        return []
    day = entry.time.date()
    return segments(words, lambda name: PEOPLE[name].card(day), SAMPLE_CHAT.self_id, rng)


def _quoted(part: str, earlier: Sequence[_Entry], scene: int, scenes: int) -> int:
    """Seq of the latest line that holds `part`: of the same scene, or else of the story."""
    for within in (lambda e: e.scene == scene, lambda e: e.scene < scenes):
        for seq in range(len(earlier), 0, -1):
            entry = earlier[seq - 1]
            if within(entry) and part in QUOTE.sub(r"\2", entry.words):
                return seq
    raise ValueError(f"no earlier line says {part!r}")

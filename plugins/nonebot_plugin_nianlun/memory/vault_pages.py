"""A chat's export as the files of a vault, and back.

```
nianlun.jsonl            whose chat it is, its settings and people, and what has no text: also
                         notes that were deleted, or are to be written anew
history.jsonl            earlier texts of notes, one a line
messages/2026-11.jsonl   what was said
diary/2026-11-29.md      the day's memory, and its activities and moments at `## HH:MM`
months/2026-11.md        years/2026.md
wiki/preferences.md      facts `## name`, and notes `## YYYY-MM-DD HH:MM:SS | category`
```

The values are the lines of an export, one object each; a text leaves them for its file, and leaves
its digest: a line whose text is another when it is read has that as its `exported`. The
day of a promise leaves its digest too: where that is another, the line is `redated`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
import json
import re
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from .calendar import titled
from .promises import PROMISE
from .vault import Complaint, block, digest, file_name, front_matter, heading, read

Row = dict[str, Any]

MARK: Final = "nianlun.jsonl"
"""By this file a vault is known."""
END: Final = "end"
"""The type of an export's last line: where its header announces it and it is not there, the file
was cut off. In a vault the mark's own last line; it tells also of how many lines each file of
messages is, and of how many texts each page."""
HISTORY: Final = "history.jsonl"
FOLDERS: Final = frozenset({"messages", "diary", "months", "years", "wiki"})
OURS: Final = re.compile(
    r"(?:nianlun|history)\.jsonl|messages/[0-9-]{1,10}\.jsonl"
    r"|(?:diary|months|years|wiki)/[^/\\.][^/\\]*\.md"
)
"""The files that are read and replaced; whatever else is in the folder is somebody's own."""
_FOLDERS: Final = {"day": "diary", "month": "months", "year": "years"}
_PAGES: Final = ("activity", *_FOLDERS, "fact")
_IDENTITY: Final = {
    "activity": ("type", "id"),
    "fact": ("owner", "name", "event_date", "written_at", "text"),
}
"""What tells two texts of a page apart. Of days, months and years there is one."""
_ANY_ZONE: Final = ZoneInfo("UTC")
_ORDER: Final = (
    *("header", "settings", "speaker", "message", "activity", "skipped", "gap"),
    *("day", "month", "year", "fact", "usage", "exclusion", END),
)


class Placed(NamedTuple):
    """A line of an export, and where in the vault it stands."""

    row: Row
    file: str
    line: int


def message_file(row: Mapping[str, Any]) -> str:
    return f"messages/{row['time'][:7]}.jsonl"


def as_line(row: Mapping[str, Any]) -> str:
    return f"{json.dumps(row, ensure_ascii=False)}\n"


def files(rows: Sequence[Row]) -> dict[str, str]:
    """The files of a vault but those of messages, by path, from all other lines of an export."""
    history = list(_history(row for row in rows if row["type"] in _PAGES))
    texts = [row for row in rows if _has_text(row)]
    pages = Counter(map(_page, texts))
    found = {MARK: "".join(map(as_line, _mark(rows, len(history), pages)))}
    found[HISTORY] = "".join(map(as_line, history))
    header = next(row for row in rows if row["type"] == "header")
    zone = ZoneInfo(header["timezone"])
    there = {(row["type"], row["date"]) for row in texts if row["type"] in _FOLDERS}
    days: dict[str, list[Row]] = {}
    for row in texts:
        if row["type"] in ("month", "year"):
            found[_page(row)] = _front(header["chat"], row, there) + _memory(row)
        elif row["type"] != "fact":
            days.setdefault(row["date"], []).append(row)
    for day, its in days.items():
        found[_page(its[0])] = _day(header["chat"], day, its, there, zone)
    return found | _wiki(header["chat"], [row for row in texts if row["type"] == "fact"], rows)


def _has_text(row: Mapping[str, Any]) -> bool:
    """Whether it stands on a page. One whose text is gone leaves no trace there."""
    return row["type"] in _PAGES and row["text"] != ""


def _page(row: Mapping[str, Any]) -> str:
    """The file of a text."""
    if row["type"] == "fact":
        return f"wiki/{file_name(row['category'])}.md"
    return f"{_FOLDERS.get(row['type'], 'diary')}/{row['date']}.md"


def _mark(rows: Iterable[Row], history: int, pages: Mapping[str, int]) -> Iterator[Row]:
    """`history`: how many earlier texts there are; `pages`: how many texts each of them has."""
    count = 0
    for row in rows:
        if not _has_text(row):
            counts = {"records": count, "history": history, "pages": pages}
            values = {key: value for key, value in row.items() if key != "versions"}
            yield values | (counts if row["type"] == END else {})
            count += 1


def _history(texts: Iterable[Row]) -> Iterator[Row]:
    for row in texts:
        for version in row.get("versions", ()):
            yield {"type": row["type"], "of": _ref(row), **version}


def _ref(row: Mapping[str, Any]) -> Any:
    return row["id"] if row["type"] == "activity" else row["date"]


def _data(row: Row) -> Row:
    """What the text of a line does not tell."""
    data = {key: value for key, value in row.items() if key not in ("text", "versions")}
    if row["type"] == "fact" and row["name"] is not None and _is_dated(row):
        data["due_digest"] = digest(row["due"] or "")
    return data | {"digest": digest(row["text"])}


def _is_dated(row: Mapping[str, Any]) -> bool:
    return row.get("category") == PROMISE or row.get("due") is not None


def _front(chat: str, row: Row, there: set[tuple[str, str]]) -> str:
    values: dict[str, object] = {"chat": chat, "date": row["date"]}
    above = {"day": "month", "month": "year"}.get(row["type"])
    if above and (above, row["date"][:-3]) in there:
        values[above] = f"[[{_FOLDERS[above]}/{row['date'][:-3]}]]"
    below = {"month": "day", "year": "month"}.get(row["type"])
    if below:
        sources = [one for one in row["sources"] if (below, one) in there]
        values[f"{below}s"] = [f"[[{_FOLDERS[below]}/{one}]]" for one in sources]
    return front_matter(values)


def _memory(row: Row) -> str:
    return f"\n{block(_title(row), row['text'], _data(row), {})}"


def _title(row: Mapping[str, Any], zone: ZoneInfo = _ANY_ZONE) -> str:
    """The heading of a text; the zone is that of the chat, and counts for activities alone."""
    if row["type"] == "activity":
        return f"## {_moment(row['time']).astimezone(zone):%H:%M}"
    return _fact_heading(row) if row["type"] == "fact" else heading(titled(row["date"]), 1)


def _day(
    chat: str, day: str, rows: Sequence[Row], there: set[tuple[str, str]], zone: ZoneInfo
) -> str:
    parts = [_front(chat, {"type": "day", "date": day}, there)]
    memory = next((row for row in rows if row["type"] == "day"), None)
    parts.append(f"\n{heading(titled(day), 1)}\n" if memory is None else _memory(memory))
    moments = (row for row in rows if row["type"] == "activity")
    for row in sorted(moments, key=lambda row: (_moment(row["time"]), row["id"])):
        parts.append(f"\n{block(_title(row, zone), row['text'], _data(row), {})}")
    return "".join(parts)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _wiki(chat: str, facts: Sequence[Row], rows: Sequence[Row]) -> dict[str, str]:
    pages = {
        f"{row['category']}:{row['name']}": f"wiki/{file_name(row['category'])}"
        for row in facts
        if row["name"] is not None
    }
    names = {row["user_id"]: row["name"] for row in rows if row["type"] == "speaker"}
    found: dict[str, str] = {}
    owner_of: dict[str, str | None] = {}
    for row in facts:
        path = _page(row)
        if path not in found:
            found[path] = front_matter({"chat": chat, "category": row["category"]})
        owner = row["owner"] or ""
        if owner_of.get(path) != owner:
            owner_of[path] = owner
            found[path] += f"\n{heading(_owner(owner, names), 1)}\n"
        found[path] += f"\n{block(_title(row), row['text'], _data(row), pages)}"
    return found


def _owner(owner: str, names: Mapping[str, str]) -> str:
    name = names.get(owner, owner)
    return (name if name == owner else f"{name}（{owner}）") or "这里"


def _fact_heading(row: Mapping[str, Any]) -> str:
    if row["name"] is not None:
        return heading(row["name"], 2)
    written = f"{_moment(row['written_at']):%Y-%m-%d %H:%M:%S}"
    return f"## {written} | {heading(row['category'], 1)[2:]}"


def rows_of(texts: Iterable[tuple[str, str]]) -> tuple[list[Placed], list[tuple[str, Complaint]]]:
    """The lines of an export from the files of a vault but those of messages, in their order.

    Takes path and content of each file, the mark first: it tells the time zone. Returns also, by
    file, what could not be read.
    """
    zone = _ANY_ZONE
    found: list[Placed] = []
    complaints: list[tuple[str, Complaint]] = []
    earlier: dict[tuple[Any, Any], list[Row]] = {}
    for path, text in texts:
        if path == HISTORY:
            for placed in _json_lines(path, text, complaints):
                row = placed.row
                key = (row.pop("type", None), _shown(row.pop("of", None)))
                earlier.setdefault(key, []).append(row)
        elif path == MARK:
            found += _json_lines(path, text, complaints)
            zone = _zone(found)
        else:
            found += _blocks(path, text, zone, complaints)
    for row, _, _ in found:
        if row["type"] == "activity" or row["type"] in _FOLDERS:
            ref = row.get("id") if row["type"] == "activity" else row.get("date")
            row["versions"] = earlier.get((row["type"], _shown(ref)), [])
    once = list(_once(found, complaints))
    once.sort(key=_place)
    return once, complaints


def _once(found: Iterable[Placed], complaints: list[tuple[str, Complaint]]) -> Iterator[Placed]:
    """Without a fact's other places: a folder in a cloud has copies of pages. Of all else, that it
    is there twice is told when it is stored."""
    seen: set[tuple[str, ...]] = set()
    for placed in found:
        row = placed.row
        if row["type"] == "fact" and row.get("name") is not None:
            fact = tuple(_shown(row.get(key)) for key in ("owner", "category", "name"))
            if fact in seen:
                why = "文件夹里有两处写这一条，只读了前面那处"
                complaints.append((placed.file, Complaint(placed.line, why)))
                continue
            seen.add(fact)
        yield placed


def texts_there(placed: Iterable[Placed]) -> Counter[str]:
    """How many texts of each page there are, on whichever page they stand now."""
    there: set[tuple[str, ...]] = set()
    for row, file, _ in placed:
        if row["type"] in _PAGES and file != MARK:
            told = _IDENTITY.get(row["type"], ())
            there.add((_home(row, file), *(_shown(row.get(key)) for key in told)))
    return Counter(page for page, *_ in there)


def _home(row: Mapping[str, Any], file: str) -> str:
    try:
        return _page(row)
    except (KeyError, TypeError, ValueError, AttributeError):
        return file  # what is wrong with the line is told when that is read


def _json_lines(path: str, text: str, complaints: list[tuple[str, Complaint]]) -> Iterator[Placed]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict) and isinstance(row.get("type"), str):
            yield Placed(row, path, number)
        else:
            complaints.append((path, Complaint(number, "不是合格的 JSON 对象")))


def _zone(rows: Iterable[Placed]) -> ZoneInfo:
    header = next((row for row, *_ in rows if row["type"] == "header"), {})
    try:
        return ZoneInfo(header["timezone"])
    except (KeyError, TypeError, ValueError, OSError):
        return _ANY_ZONE


def _blocks(
    path: str, text: str, zone: ZoneInfo, complaints: list[tuple[str, Complaint]]
) -> Iterator[Placed]:
    def title(data: Mapping[str, Any]) -> str | None:
        try:
            return _title(data, zone)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            return None  # what is wrong with the line is told when that is read

    for part in read(text, title):
        if isinstance(part, Complaint):
            complaints.append((path, part))
        elif part.data.get("type") in _PAGES:
            exported = part.data.pop("digest", None)
            row = part.data | {"text": part.text}
            due = row.pop("due_digest", None)
            redated = isinstance(due, str) and due != digest(_shown(row.get("due")))
            if isinstance(exported, str) and (redated or exported != digest(part.text)):
                row["exported"] = exported
                row["redated"] = redated
            yield Placed(row, path, part.line)
        else:
            complaints.append((path, Complaint(part.line, "不知道这一段是什么，没有读入")))


def _shown(value: object) -> str:
    """A name or number of a line; nothing for what else may stand there."""
    return str(value) if isinstance(value, str | int) else ""


def _place(placed: Placed) -> tuple[Any, ...]:
    row = placed.row
    kind = row["type"]
    rank = _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
    if kind == "activity":
        number = row.get("id")
        return rank, number if isinstance(number, int) else 0
    if kind == "fact":
        owner, category, name = (_shown(row.get(key)) for key in ("owner", "category", "name"))
        return rank, owner, category, row.get("name") is not None, name
    return (rank, _shown(row.get("date"))) if kind in _FOLDERS else (rank,)

r"""Long-term memories as a Markdown file that people can read and edit.

```
## 2025-01-15 14:30:00 | 用户偏好
用户喜欢简洁的回答风格

## 2025-01-15 15:00:00 | 项目信息
用户在做 Python 电商项目
```

An entry is a heading of time and category, its content below, and an empty line. What is written
is read back as it was; so where a content could be taken for something else, it is marked in
ways that Markdown shows as the content itself, and that a file written by hand does not need:

* a line that begins like an entry's heading, `#` and a date, gets a backslash before it;
* an empty first or last line of a content, which is no part of the empty lines around entries,
  is a line with a backslash, and a line of backslashes there gets one more;
* what text files do not keep is written as its number: `&#13;` for a carriage return, `&#0;` for
  NUL, a lone surrogate likewise, in a category also a line break and outer blanks. Such a number
  that is text itself is written `&amp;#13;`.

Read are also: files from Windows, with any line ends and a byte order mark; headings with other
signs for the date, without seconds or clock or category, with `｜` and `：` and more or fewer `#`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
import re
from typing import Final

_HEADING: Final = re.compile(
    r"#{1,6}[ \t]*([0-9]{4})[-/.年]([0-9]{1,2})[-/.月]([0-9]{1,2})日?"
    r"(?:[T \t]+([0-9]{1,2})[:：]([0-9]{2})(?:[:：]([0-9]{2}))?)?"
    r"[ \t]*(?:[|｜](.*))?",
    re.DOTALL,
)
_LIKE_A_HEADING: Final = re.compile(r"\\*#{1,6}[ \t]*[0-9]{4}[-/.年][0-9]")
_CODES: Final = r"(?:0|9|10|13|32|12288|5[5-7][0-9]{3})"
_NUMBER: Final = re.compile(rf"&((?:amp;)*)#({_CODES});")
_FRAGILE: Final = re.compile(r"[\r\x00\ud800-\udfff]")
_FRAGILE_IN_CATEGORY: Final = re.compile(r"[\r\n\x00\ud800-\udfff]|\A[ \t\u3000]|[ \t\u3000]\Z")
_BLANKS: Final = " \t\u3000"


@dataclass(frozen=True, slots=True)
class MarkdownEntry:
    """One memory of the file."""

    time: datetime
    """As a clock on the wall shows it: whole seconds, no time zone (else ValueError)."""
    category: str
    content: str

    def __post_init__(self) -> None:
        if self.time.tzinfo is not None or self.time.microsecond:
            raise ValueError(f"an entry's time has whole seconds and no time zone: {self.time}")


@dataclass(frozen=True, slots=True)
class Complaint:
    """What could not be read as it was meant, for the person who edited the file."""

    line: int
    """From 1."""
    text: str


def render(entries: Iterable[MarkdownEntry]) -> str:
    """The file of `entries`, in their order; empty for none.

    It has no other line end than `\\n`, and ends with one. `parse` gives the same entries back,
    several of one second or of equal content included.
    """
    return "\n".join(map(_render, entries))


def parse(text: str) -> tuple[list[MarkdownEntry], list[Complaint]]:
    """The entries of a file, in its order, and what is wrong with it, by line.

    Never raises. Lines before the first heading are left out; a line that looks like a heading
    but has no possible date is read as content; a missing clock is midnight, a missing category
    empty. Each of these is complained about.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    headings = {at: heading for at, line in enumerate(lines) if (heading := _heading(line))}
    ends = [*headings, len(lines)]
    entries = [
        MarkdownEntry(time, category, _content(lines[at + 1 : end]))
        for (at, (time, category)), end in zip(headings.items(), ends[1:], strict=True)
    ]
    complaints = [
        Complaint(at + 1, wrong)
        for at, line in enumerate(lines)
        if (wrong := _wrong(line, is_heading=at in headings, is_before=at < ends[0]))
    ]
    return entries, complaints


def _render(entry: MarkdownEntry) -> str:
    category = _encode(entry.category, _FRAGILE_IN_CATEGORY)
    heading = f"## {entry.time.isoformat(' ')} | {category}".rstrip(" ")
    if not entry.content:
        return f"{heading}\n"
    lines = _encode(entry.content, _FRAGILE).split("\n")
    for at, line in enumerate(lines):
        if _LIKE_A_HEADING.match(line) or (at in (0, len(lines) - 1) and _is_empty(line)):
            lines[at] = f"\\{line}"
    return "\n".join([heading, *lines, ""])


def _content(body: list[str]) -> str:
    """What stands between two headings, without the empty lines around it."""
    written = [at for at, line in enumerate(body) if line.strip()]
    if not written:
        return ""
    lines = body[written[0] : written[-1] + 1]
    for at, line in enumerate(lines):
        if line.startswith("\\") and (
            _LIKE_A_HEADING.match(line) or (at in (0, len(lines) - 1) and _is_empty(line))
        ):
            lines[at] = line[1:]
    return _decode("\n".join(lines))


def _heading(line: str) -> tuple[datetime, str] | None:
    match = _HEADING.fullmatch(line)
    if not match:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    try:
        time = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001
    except ValueError:
        return None
    return time, _decode((match[7] or "").strip(_BLANKS))


def _wrong(line: str, *, is_heading: bool, is_before: bool) -> str:
    """What a person should know about a line; empty for nothing."""
    match = _HEADING.fullmatch(line)
    if is_heading and match:
        missing = {"时刻": match[4], "分类": match[7]}
        names = "和".join(name for name, value in missing.items() if value is None)
        return f"标题里没有{names}" if names else ""
    if not line.startswith("\\") and _LIKE_A_HEADING.match(line):
        return "像一条记忆的标题，但日期或写法不对，没有当作标题"
    return "在第一条记忆之前，没有读入" if is_before and line.strip() else ""


def _is_empty(line: str) -> bool:
    """Whether a line has nothing but backslashes and blanks."""
    return not line.lstrip("\\").strip()


def _encode(text: str, fragile: re.Pattern[str]) -> str:
    marked = _NUMBER.sub(lambda match: f"&amp;{match[0][1:]}", text)
    return fragile.sub(lambda match: f"&#{ord(match[0])};", marked)


def _decode(text: str) -> str:
    return _NUMBER.sub(
        lambda match: f"&{match[1][4:]}#{match[2]};" if match[1] else chr(int(match[2])), text
    )

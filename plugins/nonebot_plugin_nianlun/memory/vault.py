r"""Texts in Markdown files that people read and edit, and that are read back as they were.

A file is made of blocks: a heading, an empty line, the text, an empty line, and a comment with
what the text does not tell:

```
## 14:30

今天下午他说拿到驾照了。
\## 23:59 是他写的，不是标题

<!-- nianlun: {"type":"activity","id":3} -->
```

The text is what counts when a file was edited; headings are for people alone. A text begins below
the heading that the comment's data make, or, where somebody changed that, below the first one;
further headings in it are text. What in a text would be structure is marked in ways that Markdown
shows as the text itself:

* a backslash stands before every `\` and `<`, before a `[` that another follows, a `&` that `#`
  follows, and what makes a heading, list, quotation, rule, table, code or comment of a line;
* controls, and what turns or breaks a line in other ways than `\n`, are their numbers: `&#8232;`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
import json
import re
from typing import Any, Final
import unicodedata

_ANYWHERE: Final = re.compile(r"[\\<]|\[(?=\[)|&(?=#)")
_AT_THE_START: Final = re.compile(r"(?m)^([ \t]*)(?=[#\-=`~>+*|%])")
_CONTROLS: Final = r"\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
_FRAGILE: Final = re.compile(f"[{_CONTROLS}]")
_ESCAPED: Final = re.compile(r"\\([\\<\[&#\-=`~>+*|%])|&#([0-9]{1,5});")
_LINK: Final = re.compile(r"(?<!\\)\\\[\[([a-z0-9_][a-z0-9_-]*:[^\[\]:|#\\&<]+)\]\]")
_SHOWN_LINK: Final = re.compile(r"(?<!\\)\[\[[^\[\]|\n]*\|([^\[\]|\n]*)\]\]")
_COMMENT: Final = re.compile(r"<!-- nianlun: (\{.*\}) -->[ \t]*")
_HEADING: Final = re.compile(r"#{1,6}(?:[ \t]|$)")
"""Without a space it is a tag, which people put at the beginning of a line."""
_FENCE: Final = "---"
_SAFE_NAME: Final = re.compile(r"[\w][\w -]*", re.UNICODE)
_HASHED: Final = re.compile(r"-[0-9a-f]{8}\Z")
_RESERVED: Final = frozenset(
    {
        "con",
        "prn",
        "aux",
        "nul",
        *(f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³"),
    }
)
_LONGEST_NAME: Final = 40
_DIGEST: Final = 16
_NO_COMMENT: Final = "这里的字不在任何一段里（后面没有 nianlun 的标记），没有读入"


@dataclass(frozen=True, slots=True)
class Block:
    """One text of a file."""

    line: int
    """Where its heading stands, from 1."""
    text: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Complaint:
    """What could not be read, for the person who edited the file."""

    line: int
    text: str


def escape(text: str) -> str:
    marked = _ANYWHERE.sub(lambda match: f"\\{match[0]}", text)
    marked = _AT_THE_START.sub(r"\1\\", marked)
    return _FRAGILE.sub(lambda match: f"&#{ord(match[0])};", marked)


def unescape(text: str) -> str:
    """The text that `escape` was given; of one written by hand, what Markdown shows."""
    return _ESCAPED.sub(lambda match: match[1] or _character(match[2]), text)


def _character(number: str) -> str:
    code = int(number)
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else chr(code)


def heading(text: str, level: int) -> str:
    """A heading on one line, whatever the text."""
    return f"{'#' * level} {escape(text).replace(chr(10), '&#10;')}"


def block(title: str, text: str, data: Mapping[str, Any], pages: Mapping[str, str]) -> str:
    """A text with its heading and comment.

    A link in it to a fact that `pages` has by its address leads to that file.
    """

    def link(match: re.Match[str]) -> str:
        page = pages.get(match[1])
        name = match[1].partition(":")[2]
        return match[0] if page is None else f"[[{page}#{name}|{match[1]}]]"

    return f"{title}\n\n{_LINK.sub(link, escape(text))}\n\n<!-- nianlun: {in_comment(data)} -->\n"


def in_comment(data: object) -> str:
    """JSON on one line that ends no comment and breaks no line, also as a YAML value."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return re.sub(f"[<>{_CONTROLS}]", lambda match: f"\\u{ord(match[0]):04x}", text)


def front_matter(values: Mapping[str, object]) -> str:
    """Properties as Obsidian shows them; lists are one value a line."""
    lines = [_FENCE]
    for key, value in values.items():
        if isinstance(value, list):
            lines += [f"{key}:", *(f"  - {in_comment(one)}" for one in value)]
        else:
            lines.append(f"{key}: {in_comment(value)}")
    return "\n".join([*lines, _FENCE, ""])


def digest(text: str) -> str:
    """What tells whether a text is the same as it was: the beginning of its SHA-256, in hex."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]


def read(
    text: str, title_of: Callable[[Mapping[str, Any]], str | None] = lambda _: None
) -> Iterator[Block | Complaint]:
    """The blocks of a file in its order, and what in it belongs to none. Never raises.

    `title_of` says which heading goes with the data of a comment; None where it cannot tell.
    """
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    begins = _after_front_matter(lines)
    for at in range(begins, len(lines)):
        comment = _COMMENT.fullmatch(lines[at])
        if comment is None:
            continue
        data = _object(comment[1])
        if data is None:
            yield Complaint(at + 1, "nianlun 的标记读不懂，这一段没有读入")
        else:
            title = _title(lines, begins, at, title_of(data))
            yield from _strays(lines, begins, title)
            yield Block(max(title, 0) + 1, _text(lines[title + 1 : at]), data)
        begins = at + 1
    yield from _strays(lines, begins, len(lines))


def _title(lines: list[str], begins: int, ends: int, expected: str | None) -> int:
    """Where among these lines the heading of a block is; the line before them if it has none."""
    headings = [at for at in range(begins, ends) if _HEADING.match(lines[at])]
    for at in headings:
        if lines[at].rstrip() == expected:
            return at
    if not headings:
        return begins - 1
    # Above the first of several blocks is a heading for all of them.
    above = lines[headings[0]].startswith("# ") and (expected or "").startswith("## ")
    if (
        above
        and len(headings) > 1
        and not any(map(str.strip, lines[headings[0] + 1 : headings[1]]))
    ):
        return headings[1]
    return headings[0]


def _strays(lines: list[str], begins: int, ends: int) -> Iterator[Complaint]:
    """What stands between blocks, each part once; a first heading alone is one of ours."""
    heading: int | None = None
    told = False
    for at in range(begins, ends):
        if _HEADING.match(lines[at]):
            heading, told = at, False
            if not lines[at].startswith("# "):
                told = True
                yield Complaint(at + 1, _NO_COMMENT)
        elif lines[at].strip() and not told:
            told = True
            yield Complaint((at if heading is None else heading) + 1, _NO_COMMENT)


def _after_front_matter(lines: list[str]) -> int:
    if lines[0].rstrip() != _FENCE:
        return 0
    ends = (at for at, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE)
    return next(ends, -1) + 1


def _object(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _text(lines: list[str]) -> str:
    if lines and not lines[0].strip():
        lines = lines[1:]
    if lines and not lines[-1].strip():
        lines = lines[:-1]
    return unescape(_SHOWN_LINK.sub(r"\\[[\1]]", "\n".join(lines)))


def file_name(text: str) -> str:
    """A name that every file system takes, the same for the same text, another for another.

    One that is safe as it is stays so. Others, and those that some file system would take for
    one of another case or composition, end in a hash.
    """
    folded = unicodedata.normalize("NFC", text).casefold()
    is_safe = text == folded and _SAFE_NAME.fullmatch(text) and text == text.strip()
    if (
        is_safe
        and len(text) <= _LONGEST_NAME
        and text not in _RESERVED
        and not _HASHED.search(text)
    ):
        return text
    shown = re.sub(r"[^\w-]+", "_", folded).strip("_")[:_LONGEST_NAME]
    return f"{shown}-{sha256(text.encode()).hexdigest()[:8]}"

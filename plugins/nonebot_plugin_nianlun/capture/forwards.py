"""Forwarded talk: what others said elsewhere, quoted inside the message that passes it on.

Whoever speaks in it is not speaking here: no speaker is registered for it, and in a text every
line of it is indented below the message's own first line, under a name that cannot pass for
anything else. It comes with its lines, or with an id by which the other side hands them out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ..memory.render import safe_name
from ..types import Segment
from .cleaning import clean_name, one_line

Write: TypeAlias = Callable[[Sequence[Any]], str]
"""The text of one line's content."""
Ask: TypeAlias = Callable[[str], Awaitable[object]]
"""Asks the other side for the lines behind an id, as it calls them. Raises NotOpened."""

FORWARD = "[聊天记录]"
DEPTH = 3
LINES = 100
CHARS = 4_000
LINE_CHARS = 500
PIECES = 100
"""Segments of one line that are looked at; nobody types so many."""
_CALLS = 6
"""Most questions about one message: forwards may stand inside each other."""
_ID_LIMIT = 200
_UNKNOWN = "?"
_MINE = ("我", "me")
"""What the bot itself is called in notes and prompts."""


class NotOpened(Exception):
    """The other side does not hand out the lines. Its text is one line for the log."""


def forward_text(data: Mapping[str, Any], write: Write) -> str:
    """A forward as text: `[聊天记录]`, then an indented `名字: 内容` for each of its lines."""
    lines = [FORWARD]
    room = CHARS
    for line in _lines(_nodes(data), write, 1):
        room -= len(line) + 1
        if room < 0 or len(lines) > LINES:
            lines.append("  …")
            break
        lines.append(line)
    return "\n".join(lines)


def _lines(nodes: Sequence[Any], write: Write, depth: int) -> Iterator[str]:
    """Yield a line for every node, and below it those of the forwards inside it."""
    for node in nodes:
        name, content = _node(node)
        text = one_line(write(content), LINE_CHARS)
        yield f"{'  ' * depth}{name}: {text or '[消息]'}"
        if depth < DEPTH:
            for segment in content:
                if kind_of(segment) == "forward":
                    yield from _lines(_nodes(data_of(segment)), write, depth + 1)


def unopened(segments: Sequence[Segment]) -> bool:
    """Whether there is a forward of which only the id is here."""
    return any(_id(one) and not _nodes(data_of(one)) for one in segments)


async def opened(segments: Sequence[Segment], ask: Ask, write: Write) -> list[Segment]:
    """The segments with the lines of their forwards in them, as many as are ever shown.

    Raises NotOpened, as `ask` does, for a forward of the message itself; one further inside
    that is not to be had stays closed.
    """
    opener = _Opener(ask, write)
    return [await opener.opened(segment, 1) for segment in segments]


class _Opener:
    """Opens the forwards of one message, within a number of questions and of lines."""

    def __init__(self, ask: Ask, write: Write) -> None:
        self._ask = ask
        self._write = write
        self._calls = _CALLS
        self._lines = LINES

    async def opened(self, segment: Any, depth: int) -> Segment:
        nodes = _nodes(data_of(segment))
        if kind_of(segment) != "forward" or (depth == 1 and nodes):
            return segment
        if not nodes and (number := _id(segment)) and self._calls:
            self._calls -= 1
            try:
                nodes = _answered(await self._ask(number))
            except NotOpened:
                if depth == 1:
                    raise
        content = [await self._slim(node, depth) for node in self._within(nodes)]
        return {"type": "forward", "data": {"id": _id(segment), "content": content}}

    def _within(self, nodes: Sequence[Any]) -> Iterator[Any]:
        for node in nodes:
            if self._lines <= 0:
                return
            self._lines -= 1
            yield node

    async def _slim(self, node: Any, depth: int) -> Segment:
        """A node with its line as text and the forwards inside it, without all the rest."""
        name, content = _node(node)
        inner = [one for one in content if kind_of(one) == "forward"][:_CALLS]
        line = one_line(
            self._write([one for one in content if kind_of(one) != "forward"]), LINE_CHARS
        )
        said = [{"type": "text", "data": {"text": line}}] if line else []
        if depth < DEPTH:
            said += [await self.opened(one, depth + 1) for one in inner]
        elif inner:
            said.append({"type": "forward", "data": {}})
        return {"type": "node", "data": {"name": name, "content": said}}


def _answered(data: object) -> Sequence[Any]:
    """The lines in an answer of `get_forward_msg`; each implementation calls them otherwise."""
    if isinstance(data, Mapping):
        found = (data.get(key) for key in ("messages", "message", "content"))
        data = next((one for one in found if isinstance(one, list)), None)
    return data if isinstance(data, list) else []


def kind_of(segment: object) -> str:
    """The type of a segment, or "" for what is none."""
    kind = segment.get("type") if isinstance(segment, Mapping) else None
    return kind if isinstance(kind, str) else ""


def data_of(segment: object) -> Mapping[str, Any]:
    """The data of a segment, empty for what has none."""
    data = segment.get("data") if isinstance(segment, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def _id(segment: object) -> str:
    if kind_of(segment) != "forward":
        return ""
    return one_line(data_of(segment).get("id"), _ID_LIMIT)


def _nodes(data: Mapping[str, Any]) -> Sequence[Any]:
    return _as_list(data.get("content") or data.get("messages"))


def _node(node: object) -> tuple[str, Sequence[Any]]:
    """Return speaker and content of a forward's entry: a node segment or a whole event."""
    if not isinstance(node, Mapping):
        return _UNKNOWN, _as_list(node)[:PIECES]
    kind = kind_of(node)
    body = data_of(node) if kind == "node" else node
    if kind and kind != "node":
        return _UNKNOWN, [node]
    sender = body.get("sender")
    people = [sender, body] if isinstance(sender, Mapping) else [body]
    keys = ("card", "nickname", "name", "user_id", "uin")
    names = (clean_name(one_line(who.get(key), 40)) for who in people for key in keys)
    name = next((safe_name(name) for name in names if name), _UNKNOWN)
    if name.lower() in _MINE:
        name += "〔转发〕"
    content = body.get("content") or body.get("message")
    return name, _as_list(content)[:PIECES]


def _as_list(value: object) -> Sequence[Any]:
    if isinstance(value, str):
        return [{"type": "text", "data": {"text": value}}]
    if isinstance(value, Mapping):
        return [value]
    return value if isinstance(value, list | tuple) else []

"""A chat's history as the other side hands it out: pages, newest first, each of its own shape.

| implementation | starts from | into the past | page |
| --- | --- | --- | --- |
| NapCat | `message_seq`, an id as in the items | only with `reverseOrder` | as long as asked |
| LLBot | `message_seq`, a sequence number as in the items | always | as long as asked |
| Lagrange | `message_id` | always | as long as asked |
| go-cqhttp | `message_seq` | always | about 20, groups only |

Every request names the start in both ways and asks for the past; a page that brings nothing
older is asked for once more the other way round. Pages overlap in the message they start from.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from ..types import ChatKey, Incoming
from .events import id_text, incoming

PAGE = 50
"""Messages asked for at a time."""

Call: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[object]]
"""Calls an action of the other side and returns its data."""


class NoAnswer(Exception):
    """The other side gives no history. Its text is one line for the log."""


class NotHistory(NoAnswer):
    """The answer holds no list of messages."""


class Fetched(NamedTuple):
    """A message of a history."""

    message: Incoming
    withdrawn: bool
    """The other side says that it was taken back, though some still tell its words."""
    cursor: Mapping[str, Any]
    """The parameters that make a page start from it."""


@dataclass(slots=True)
class Reach:
    """What a walk into the past brought."""

    lines: list[Fetched] = field(default_factory=list)
    """In event order, each once."""
    complete: bool = False
    """It reached the moment that it was to reach."""
    oldest: datetime | None = None
    """Back to this time it brought everything that the other side has."""
    pages: int = 0


def action(chat: ChatKey) -> str:
    """The name of the action that hands out a chat's history."""
    return "get_group_msg_history" if chat.kind == "group" else "get_friend_msg_history"


async def walk_back(
    call: Call,
    chat: ChatKey,
    since: datetime,
    now: Callable[[], datetime],
    *,
    pages: int,
    messages: int,
) -> Reach:
    """Fetch a chat's history from now back to `since`, within as many pages and messages.

    Raises NoAnswer when the first call does; a later failure ends the walk where it stands.
    """
    name = action(chat)
    reach = Reach()
    found: list[list[Fetched]] = []
    cursor: Mapping[str, Any] = {}
    ways = [True, False]
    while reach.pages < pages and len(reach.lines) < messages and ways:
        asked = _params(chat, cursor, into_the_past=ways[0])
        reach.pages += 1
        try:
            page = read_page(await call(name, asked), chat, now())[-messages:]
        except NoAnswer:
            if not found:
                raise
            break
        older = merged([page, *found])
        if found and len(older) == len(reach.lines):
            ways.pop(0)
            continue
        found.insert(0, page)
        reach.lines = older
        if not page:
            break
        edge = page[0]
        if edge.message.time <= since:
            # One line may bear any time: it takes the next one to say so too.
            edge = page[:2][-1]
        reach.oldest = edge.message.time
        reach.complete = reach.oldest <= since
        if reach.complete:
            break
        cursor = edge.cursor
    if not ways:
        reach.oldest = found[0][0].message.time
        reach.complete = reach.oldest <= since
    return reach


def read_page(data: object, chat: ChatKey, now: datetime) -> list[Fetched]:
    """Read an answer of the history action; what in it is no message of this chat is left out.

    Raises NotHistory when there is no list in it.
    """
    if isinstance(data, Mapping):
        data = data.get("messages")
    if not isinstance(data, list):
        raise NotHistory("历史消息接口的回答里没有消息列表")
    read = [_read(item, chat, now) for item in data]
    page = [line for line in read if line is not None]
    if page and page[0].message.time > page[-1].message.time:
        page.reverse()
    return sorted(page, key=lambda line: line.message.time)


def merged(pages: Sequence[Iterable[Fetched]]) -> list[Fetched]:
    """All lines of the pages (oldest page first) in event order, each once.

    An id that several different lines bear says nothing, and is taken from them. So are all ids
    where each page has new ones for the same lines.
    """
    contents: defaultdict[str, set[object]] = defaultdict(set)
    for page in pages:
        for line in page:
            if line.message.message_id is not None:
                contents[line.message.message_id].add(_content(line.message))
    renumbered = _renumbered(pages)
    found: dict[tuple[object, int], Fetched] = {}
    for page in pages:
        seen: Counter[object] = Counter()
        for line in page:
            message = line.message
            same: object = message.message_id
            if same is None or renumbered or len(contents[message.message_id or ""]) > 1:
                line = line._replace(message=replace(message, message_id=None))
                same = _content(message)
                seen[same] += 1
            known = found.setdefault((same, seen[same]), line)
            if line.withdrawn and not known.withdrawn:
                found[same, seen[same]] = line
    return sorted(found.values(), key=lambda line: line.message.time)


def _renumbered(pages: Sequence[Iterable[Fetched]]) -> bool:
    """Whether pages have lines in common, and for none of them the same id."""
    ids: set[str] = set()
    said: set[object] = set()
    in_common = False
    for page in pages:
        told = [(line.message.message_id, _content(line.message)) for line in page]
        own = {id_ for id_, _ in told if id_ is not None}
        if not ids.isdisjoint(own):
            return False
        in_common = in_common or any(id_ and content in said for id_, content in told)
        ids |= own
        said.update(content for _, content in told)
    return in_common


def _params(chat: ChatKey, cursor: Mapping[str, Any], *, into_the_past: bool) -> dict[str, Any]:
    peer = "group_id" if chat.kind == "group" else "user_id"
    number = int(chat.peer_id) if chat.peer_id.isascii() and chat.peer_id.isdigit() else None
    params: dict[str, Any] = {peer: chat.peer_id if number is None else number, "count": PAGE}
    if cursor:
        params |= cursor
        if into_the_past:
            params |= {"reverseOrder": True, "reverse_order": True}
    return params


def _read(item: object, chat: ChatKey, now: datetime) -> Fetched | None:
    if not isinstance(item, Mapping):
        return None
    fields = {**item, **_whereabouts(item, chat)}
    # What has no usable time is read as of now: the odd microsecond tells it from all others.
    message = incoming(fields, self_id=chat.self_id, now=now.replace(microsecond=1))
    if message is None or message.chat != chat or message.time.microsecond:
        return None
    message = replace(message, source="history", heard_at=None)
    return Fetched(message, _is_withdrawn(item), _cursor(item))


def _whereabouts(item: Mapping[str, Any], chat: ChatKey) -> dict[str, Any]:
    """The fields that tell event and chat, for items that lack some of them."""
    told = {"post_type": "message", "message_type": chat.kind}
    if chat.kind == "private":
        # Our own lines name us, and not everywhere to whom they went.
        return {**told, "group_id": None, "target_id": chat.peer_id}
    return {**told, "group_id": item.get("group_id") or chat.peer_id}


def _is_withdrawn(item: Mapping[str, Any]) -> bool:
    if str(item.get("status")).lower() in ("deleted", "recalled"):
        return True
    names = ("recalled", "is_recalled", "isRecalled", "deleted", "recall_time", "recallTime")
    return any(item.get(name) not in (None, False, 0, "", "0", "false") for name in names)


def _cursor(item: Mapping[str, Any]) -> dict[str, Any]:
    ids = {"message_seq": item.get("message_seq"), "message_id": item.get("message_id")}
    known = {name: value for name, value in ids.items() if id_text(value) is not None}
    if known and "message_seq" not in known:
        known["message_seq"] = known["message_id"]
    return known


def _content(message: Incoming) -> tuple[object, ...]:
    """What two pages have in common of a message: addresses of media are new each time."""
    words = tuple((part["type"], str(part["data"].get("text"))) for part in message.segments)
    return message.time, message.user_id, words

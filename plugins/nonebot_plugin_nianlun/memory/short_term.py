"""The newest messages of a session, such that they can be sent to a model as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

_M = TypeVar("_M")


class HasMessages(Protocol):
    """A session: its messages in order, each a mapping or an object in OpenAI's form with `role`,
    and where it applies `tool_calls` (each with an `id`) or `tool_call_id`."""

    @property
    def messages(self) -> Sequence[Any] | None: ...


class ShortTermMemory:
    """A window over the messages of a session.

    `max_messages` is 0 or more, or None for no limit; a negative number raises ValueError.

    >>> from types import SimpleNamespace
    >>> session = SimpleNamespace(messages=[
    ...     {"role": "system", "content": "你是小忆。"},
    ...     {"role": "user", "content": "早"},
    ...     {"role": "assistant", "content": "早呀"},
    ...     {"role": "user", "content": "今天几号？"},
    ... ])
    >>> [m["content"] for m in ShortTermMemory(max_messages=2).get_messages(session)]
    ['你是小忆。', '早呀', '今天几号？']
    """

    def __init__(self, max_messages: int | None = 20) -> None:
        self.max_messages = _checked(max_messages)

    def get_messages(self, session: HasMessages) -> list[Any]:
        """The messages of `session` within the window; see `trim`."""
        return self.trim(session.messages, self.max_messages)

    @staticmethod
    def trim(messages: Iterable[_M] | None, max_messages: int | None) -> list[_M]:
        """The newest `max_messages` of `messages`, in order; the messages themselves, no copies.

        * System (or developer) messages that lead are always kept and not counted; later ones
          are messages like others.
        * The last message of the user is kept before all else, however much followed it; only a
          window of 0 has no room for it.
        * An assistant's tool calls and the results right behind them are kept or dropped
          together. Calls whose results are not all there, and results without their call, are
          dropped whatever the limit, as a model refuses them.
        * There may be fewer than `max_messages` where calls and results do not fit as a whole;
          there are never more.

        The input is not changed. None as messages is no messages.
        """
        limit = _checked(max_messages)
        rest = list(messages or ())
        leading = next((i for i, m in enumerate(rest) if not _is_system(m)), len(rest))
        kept, units = rest[:leading], _units(rest[leading:])
        for unit in _newest(units, limit):
            kept.extend(unit)
        return kept


def _checked(max_messages: int | None) -> int | None:
    if max_messages is not None and max_messages < 0:
        raise ValueError(f"max_messages must be 0 or more, or None for no limit: {max_messages}")
    return max_messages


def _newest(units: list[list[_M]], limit: int | None) -> list[list[_M]]:
    """The newest units of no more than `limit` messages, the last of the user's among them."""
    if limit is None:
        return units
    if limit == 0:
        return []
    turns = [index for index, unit in enumerate(units) if _get(unit[0], "role") == "user"]
    asked = turns[-1:]
    room = limit - len(asked)
    first = len(units)
    while first and (first - 1 in asked or len(units[first - 1]) <= room):
        first -= 1
        room -= 0 if first in asked else len(units[first])
    return [units[index] for index in asked if index < first] + units[first:]


def _units(messages: list[_M]) -> list[list[_M]]:
    """What is kept or dropped together: calls with all their results, or one other message."""
    units: list[list[_M]] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        results: dict[Any, _M] = {}
        while at < len(messages) and _is_result(messages[at]):
            results.setdefault(_get(messages[at], "tool_call_id"), messages[at])
            at += 1
        called = {_get(call, "id") for call in _get(message, "tool_calls") or ()}
        if called <= results.keys() and not _is_result(message):
            units.append([message, *(results[call] for call in results if call in called)])
    return units


def _is_result(message: object) -> bool:
    return _get(message, "role") == "tool"


def _is_system(message: object) -> bool:
    return _get(message, "role") in ("system", "developer")


def _get(message: object, name: str) -> Any:
    if isinstance(message, Mapping):
        return message.get(name)
    return getattr(message, name, None)

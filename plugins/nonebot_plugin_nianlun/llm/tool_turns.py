"""What a model says in a conversation with tools: words, calls, or both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
import json
import secrets
from typing import Any

from ..types import Usage


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool, with its arguments as the text that the model wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolTurn:
    """A model's turn; it has text, calls, or both."""

    text: str
    calls: tuple[ToolCall, ...]
    message: dict[str, Any]
    """The turn as it is to be sent back, in which every call has an id of its own."""
    usage: Usage
    whole: bool
    """It was not cut off by a limit of the provider's."""


def read_turn(choice: Mapping[str, Any], text: str, usage: Usage) -> ToolTurn:
    """A turn of a choice whose text, without thoughts, is known."""
    given = choice.get("message")
    message: dict[str, Any] = given if isinstance(given, dict) else {}
    listed = message.get("tool_calls")
    raw = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    taken: set[str] = set()
    calls = [(call, _call(call, taken)) for call in raw]
    back: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        # Some providers refuse their own calls without what they put beside them.
        beside = {key: value for key, value in message.items() if value}
        back = beside | back | {"tool_calls": [_sent_back(*pair) for pair in calls]}
    whole = choice.get("finish_reason") != "length"
    return ToolTurn(text, tuple(call for _, call in calls), back, usage, whole)


def _call(raw: Mapping[str, Any], taken: set[str]) -> ToolCall:
    """Endpoints leave out ids, repeat them, and give arguments as objects."""
    given = raw.get("function")
    function: dict[str, Any] = given if isinstance(given, dict) else {}
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    name, call_id = function.get("name"), raw.get("id")
    if not isinstance(call_id, str) or not call_id or call_id in taken:
        call_id = f"call_{secrets.token_hex(6)}"
    taken.add(call_id)
    return ToolCall(call_id, name if isinstance(name, str) else "", arguments)


def _sent_back(raw: Mapping[str, Any], call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {**raw, "id": call.id, "type": "function", "function": function}

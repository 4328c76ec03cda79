"""What a model says in a conversation with tools: words, calls, or both."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
import json
import re
import secrets
from typing import Any

from ..errors import BadAnswer
from ..memory.answers import parse_json
from ..types import Usage

_EVEN_EMPTY = {"reasoning_content"}
"""DeepSeek wants it back as it was."""
_WRITTEN_CALL = re.compile(r"^[ \t]*<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL | re.MULTILINE)
"""The form of Hermes and Qwen, which vLLM and Ollama read only with the right settings. In the
middle of a line it is quoted."""
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONGEST_ARGUMENTS = 50_000
_MOST_CALLS = 64
"""More than any session has to make in one turn; what goes on and on is cut here."""
_FENCED = re.compile(r"```\w*\s*(.*?)\s*```", re.DOTALL)


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


def read_turn(
    choice: Mapping[str, Any], text: str, usage: Usage, offered: Collection[str] = ()
) -> ToolTurn:
    """A turn of a choice whose text, without thoughts, is known; `offered` names the tools."""
    given = choice.get("message")
    message: dict[str, Any] = given if isinstance(given, dict) else {}
    listed = message.get("tool_calls")
    raw = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    if not raw:
        text, raw = _written_calls(text) or _bare_calls(text, offered) or (text, [])
    del raw[_MOST_CALLS:]
    taken: set[str] = set()
    calls = [(call, _call(call, taken)) for call in raw]
    back: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        # Some providers refuse their own calls without what they put beside them.
        beside = {k: v for k, v in message.items() if v or (v == "" and k in _EVEN_EMPTY)}
        back = beside | back | {"tool_calls": [_sent_back(*pair) for pair in calls]}
    whole = choice.get("finish_reason") != "length"
    return ToolTurn(text, tuple(call for _, call in calls), back, usage, whole)


def _call(raw: Mapping[str, Any], taken: set[str]) -> ToolCall:
    """Endpoints leave out ids, repeat them, and give arguments as objects."""
    given = raw.get("function")
    function: dict[str, Any] = given if isinstance(given, dict) else {}
    arguments = function.get("arguments")
    if arguments is None:
        arguments = "{}"
    elif not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    name, call_id = function.get("name"), raw.get("id")
    if not isinstance(call_id, str) or not call_id or call_id in taken:
        call_id = f"call_{secrets.token_hex(6)}"
    taken.add(call_id)
    return ToolCall(call_id, name if isinstance(name, str) else "", arguments)


def _sent_back(raw: Mapping[str, Any], call: ToolCall) -> dict[str, Any]:
    # One that no tool can have is refused by some, and that reads as though they took no tools.
    name = call.name if _NAME.fullmatch(call.name) else "unknown"
    function = {"name": name, "arguments": _loadable(call.arguments)}
    beside = {key: value for key, value in raw.items() if key != "index"}
    return {**beside, "id": call.id, "type": "function", "function": function}


def _loadable(arguments: str) -> str:
    """Arguments as every endpoint can read them back: several answer with an error to calls of
    their own whose arguments are no JSON object. What was wrong is told by the call's result.
    What is longer than any tool takes need not be paid for again."""
    if len(arguments) > _LONGEST_ARGUMENTS:
        return "{}"
    try:
        found = parse_json(arguments)
    except BadAnswer:
        return "{}"
    if not isinstance(found, dict):
        return "{}"
    return arguments if _is_json(arguments) else json.dumps(found, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _written_calls(text: str) -> tuple[str, list[dict[str, Any]]] | None:
    """Calls that a server left standing in the text, and the text without them."""
    found: list[dict[str, Any]] = []
    for written in _WRITTEN_CALL.findall(text):
        try:
            call = parse_json(written)
        except BadAnswer:
            continue
        if isinstance(call, dict) and isinstance(call.get("name"), str):
            found.append({"function": call})
    return (_WRITTEN_CALL.sub("", text).strip(), found) if found else None


def _bare_calls(text: str, offered: Collection[str]) -> tuple[str, list[dict[str, Any]]] | None:
    """Calls that are all of the text or of a fenced block in it, as small models write them, and
    the text without them."""
    whole = _calls_in(text, offered)
    if whole:
        return "", whole
    found = [(block[0], _calls_in(block[1], offered)) for block in _FENCED.finditer(text)]
    for block, calls in found:
        text = text.replace(block, "") if calls else text
    calls = [call for _, some in found for call in some]
    return (text.strip(), calls) if calls else None


def _calls_in(text: str, offered: Collection[str]) -> list[dict[str, Any]]:
    """An object, or a list of them, that names a tool which there is; else nothing."""
    try:
        given = json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return []
    calls = given if isinstance(given, list) else [given]
    found = [
        {
            "function": {
                "name": call["name"],
                "arguments": call.get("arguments", call.get("parameters")),
            }
        }
        for call in calls
        if isinstance(call, dict) and isinstance(call.get("name"), str) and call["name"] in offered
    ]
    return found if len(found) == len(calls) else []

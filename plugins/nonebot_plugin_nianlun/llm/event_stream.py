"""An answer that came in pieces, as server-sent events, put together as if it had come whole."""

from __future__ import annotations

from collections.abc import Iterator
import json
import re
from typing import Any

_DATA = re.compile(r"^data:[ \t]?(.*)$", re.MULTILINE)
_LINE_ENDS = re.compile(r"\r\n?")
_DONE = "[DONE]"
_CUT_OFF = {"error": {"code": 502, "message": "the stream ended before the answer did"}}


def is_stream(body: str) -> bool:
    return _DATA.search(_LINE_ENDS.sub("\n", body)) is not None


def put_together(body: str) -> dict[str, Any] | None:
    """The completion whose chunks these events are; an error where one of them is, or where the
    stream ends in the middle. None when an event is no JSON object.
    """
    answer: dict[str, Any] = {}
    choice: dict[str, Any] = {"message": {"role": "assistant"}}
    done = False
    for data in _events(body):
        if data == _DONE:
            done = True
            break
        chunk = _object(data)
        if chunk is None:
            return None
        if chunk.get("error"):
            return chunk
        answer |= {key: value for key, value in chunk.items() if value and key != "choices"}
        _add(choice, chunk.get("choices"))
    if not done and not choice.get("finish_reason"):
        return dict(_CUT_OFF)
    return answer | {"choices": [choice]}


def _events(body: str) -> Iterator[str]:
    """The data of each event; no provider spreads one over several lines."""
    for found in _DATA.finditer(_LINE_ENDS.sub("\n", body)):
        if data := found[1].strip():
            yield data


def _object(data: str) -> dict[str, Any] | None:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return chunk if isinstance(chunk, dict) else None


def _add(choice: dict[str, Any], choices: object) -> None:
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return
    piece = choices[0]
    for key in ("finish_reason", "error"):
        if piece.get(key):
            choice[key] = piece[key]
    # Some end with the whole message once more, some send nothing but that.
    whole, delta = piece.get("message"), piece.get("delta")
    if isinstance(whole, dict) and not isinstance(delta, dict):
        choice["message"] = dict(whole)
    elif isinstance(delta, dict):
        _extend(choice["message"], delta)


def _extend(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for key, value in delta.items():
        if key == "tool_calls":
            calls = message.setdefault("tool_calls", [])
            for piece in value if isinstance(value, list) else []:
                if isinstance(piece, dict):
                    _extend_call(calls, piece)
        elif key != "role" and value is not None:
            message[key] = _longer(message.get(key), value)


def _longer(before: Any, more: Any) -> Any:
    if before is None or type(before) is not type(more) or not isinstance(more, (str, list)):
        return more
    return before + more


def _extend_call(calls: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """Add to the call that a piece belongs to: that of its index, where it has one, else the last
    one, unless it names another."""
    index, call_id = piece.get("index"), piece.get("id")
    call = next((c for c in calls if index is not None and c["index"] == index), None)
    if call is None and index is None and calls and call_id in (None, "", calls[-1]["id"]):
        call = calls[-1]
    if call is None:
        call = {"index": index, "id": call_id, "type": "function", "function": {}}
        calls.append(call)
    given = piece.get("function")
    function: dict[str, Any] = given if isinstance(given, dict) else {}
    call["function"].setdefault("name", "")
    call["function"]["name"] = call["function"]["name"] or function.get("name") or ""
    if (arguments := function.get("arguments")) is not None:
        call["function"]["arguments"] = _longer(call["function"].get("arguments"), arguments)
    call |= {k: v for k, v in piece.items() if k not in ("index", "id", "type", "function")}

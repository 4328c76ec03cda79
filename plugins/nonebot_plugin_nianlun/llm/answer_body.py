"""What stands in the body of an answer, read as plain data of any shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
import json
from typing import Any

from ..errors import ModelError, ModelRefused
from ..memory.tokens import estimate_tokens
from ..types import Usage
from . import event_stream

_MOST_TOKENS = 10**9
_PICTURE_TOKENS = 1_000
"""About what providers take for one of a usual size."""


def answer_object(body: str) -> dict[str, Any] | None:
    """The answer in a body, whether it came whole or, asked for or not, in pieces."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return event_stream.put_together(body) if event_stream.is_stream(body) else None
    return answer if isinstance(answer, dict) else None


def first_choice(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    choices = answer.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return None


def choice_text(choice: Mapping[str, Any], model: str) -> str:
    """What is said, with its thoughts. Raises ModelRefused."""
    message = _message(choice)
    text = _joined(message.get("content"))
    if not text.encode("utf-8", "ignore").decode().strip():
        text = ""  # half a character by itself is none
    refused = not text and message.get("refusal")
    if refused or choice.get("finish_reason") in ("content_filter", "sensitive"):
        raise ModelRefused(f"模型 {model} 拒绝了这段内容")
    return well_formed(text)


def _message(choice: Mapping[str, Any]) -> dict[str, Any]:
    message = choice.get("message")
    return message if isinstance(message, dict) else {}


def _joined(content: object) -> str:
    """Content as text; some endpoints give a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def well_formed(value: Any) -> Any:
    """A copy in which lone surrogates, which UTF-8 cannot carry, are question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {key: well_formed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [well_formed(item) for item in value]
    return value


@contextmanager
def costing(usage: Usage) -> Iterator[None]:
    """An answer that cannot be used has its price all the same."""
    try:
        yield
    except ModelError as error:
        error.usage = usage
        raise


def cost(answer: Mapping[str, Any], fields: Mapping[str, Any], choice: Mapping[str, Any]) -> Usage:
    """What the answer cost; by the estimator where the endpoint does not say, since a limit on
    tokens has to hold there too."""
    told = told_usage(answer)
    if told.prompt:
        return told
    words, pictures = _without_pictures(fields["messages"])
    asked = json.dumps([words, fields.get("tools", [])], ensure_ascii=False)
    message = _message(choice)
    said = f"{_joined(message.get('content'))}{message.get('tool_calls') or ''}"
    return replace(
        told,
        prompt=estimate_tokens(asked) + pictures * _PICTURE_TOKENS,
        completion=told.completion or estimate_tokens(well_formed(said)),
    )


def _without_pictures(messages: Sequence[Mapping[str, Any]]) -> tuple[list[object], int]:
    """What the messages say in words, and how many pictures they hold: these cost by their size,
    not by how many letters their bytes are written in."""
    contents = [message.get("content") for message in messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    pictures = sum(part.get("type") == "image_url" for part in parts)
    if not pictures:
        return list(messages), 0
    return [*(c for c in contents if isinstance(c, str)), _joined(parts)], pictures


def told_usage(answer: Mapping[str, Any]) -> Usage:
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        prompt=_count(usage.get("prompt_tokens")),
        cached=_count(cached) or _count(usage.get("prompt_cache_hit_tokens")),
        completion=_count(usage.get("completion_tokens")),
    )


def _count(value: object) -> int:
    return min(value, _MOST_TOKENS) if isinstance(value, int) and value > 0 else 0

"""What a model answered, without its thoughts, and the JSON in it."""

from __future__ import annotations

from collections.abc import Iterator
import json
import re
from typing import NoReturn

from ..errors import BadAnswer

_THOUGHT = r"<(think|thinking|thought)\b[^<>]*>.*?(?:</\1\s*>|\Z)"
_THOUGHT_ANYWHERE = re.compile(_THOUGHT, re.DOTALL | re.IGNORECASE)
_THOUGHT_AT_LINE_START = re.compile(r"^[ \t]*" + _THOUGHT, re.DOTALL | re.IGNORECASE | re.MULTILINE)
_THOUGHT_END = re.compile(
    r"\A.*</(?:think|thinking|thought)\s*>[ \t]*$", re.DOTALL | re.IGNORECASE | re.MULTILINE
)
_THOUGHT_CLOSED_AGAIN = re.compile(
    r"\A.*(?<!`)</(?:think|thinking|thought)\s*>", re.DOTALL | re.IGNORECASE
)
# Only at the start of a line: a fence inside a JSON string was quoted from a chat.
_FENCE = re.compile(r"^[ \t]*```[\w-]*[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
# A bracket of prose such as `[笑]` or `{名字}` cannot begin JSON and is passed over.
_OPENING = re.compile(r'\{(?=\s*["}])|\[(?=\s*[\[\]{"\d-])')
_IN_BRACKETS = re.compile(r'"(?:\\.|[^"\\])*"|[\[\]{}"]', re.DOTALL)
_MOST_SPANS = 1000
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[\]}])', re.DOTALL)


def without_thoughts(text: str, json: bool) -> str:
    """Drop reasoning that the model left in its answer, also when it was never closed.

    In JSON only thoughts that start or end a line are dropped: a tag inside a string was quoted
    from a chat, and cutting there would let a single message spoil every note about it.
    """
    text, thoughts = (_THOUGHT_AT_LINE_START if json else _THOUGHT_ANYWHERE).subn("", text)
    if thoughts and not json:
        # One was in the other, or it went on after its end.
        text = _THOUGHT_CLOSED_AGAIN.sub("", text)
    return _THOUGHT_END.sub("", text).strip()


def parse_json(text: str) -> dict[str, object] | list[object]:
    """The object or list in an answer: the whole of it, else a fenced block, else the longest
    outermost pair of brackets. Prose around it and trailing commas are tolerated; what was cut
    short is not, because half an answer looks like a whole one.

    Raises BadAnswer, with a sentence for the model, when there is none.
    """
    text = text.lstrip("\ufeff")
    for candidate in (text, *_FENCE.findall(text)):
        value = _load(candidate)
        if value is not None:
            return value
    found = [(len(span), value) for span in _spans(text) if (value := _load(span)) is not None]
    if not found:
        raise BadAnswer("回答里没有完整的 JSON 对象，请只输出一个 JSON 对象")
    return max(found, key=lambda item: item[0])[1]


def parse_items(text: str, *keys: str) -> list[object]:
    """The list in an answer: by itself, under one of these keys of an object, or of one item.

    Raises BadAnswer when there is no JSON.
    """
    value = parse_json(without_thoughts(text, json=True))
    if isinstance(value, list):
        return value
    for key in keys:
        if isinstance(listed := value.get(key), list):
            return listed
    return [value]


def _spans(text: str) -> Iterator[str]:
    """Each outermost balanced pair of brackets; brackets inside strings do not count."""
    position = 0
    for _ in range(_MOST_SPANS):
        opening = _OPENING.search(text, position)
        if opening is None:
            return
        end = _end_of(text, opening.start())
        if end is None:
            return
        yield text[opening.start() : end]
        position = end


def _end_of(text: str, start: int) -> int | None:
    depth = 0
    for token in _IN_BRACKETS.finditer(text, start):
        mark = token[0]
        if mark == '"':  # a string that never ends
            return None
        depth += (mark in "[{") - (mark in "]}")
        if depth == 0:
            return token.end()
    return None


def _load(text: str) -> dict[str, object] | list[object] | None:
    for attempt in (text, _TRAILING_COMMA.sub(lambda match: match[1] or "", text)):
        try:
            value = json.loads(attempt, strict=False, parse_constant=_not_json)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, (dict, list)) else None
    return None


def _not_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")

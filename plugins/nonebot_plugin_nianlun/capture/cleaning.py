"""Making hostile text safe to store and to show: NUL, lone surrogates, invisible names."""

from __future__ import annotations

import re

LABEL_LIMIT = 100
"""Longest card title, summary or file name inside a readable text, in characters."""
NAME_LIMIT = 100
"""QQ itself allows at most 60 characters in a card; longer ones come from elsewhere."""

_SURROGATE = re.compile("[\ud800-\udfff]")
# Controls, and the marks that turn the direction of what follows them.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_INVISIBLE_RANGES = (
    (0x00, 0x20),
    (0x7F, 0xA0),
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x61C, 0x61C),
    (0x115F, 0x1160),
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2000, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF9, 0xFFFB),
    (0xE0000, 0xE01EF),
)
_INVISIBLE = "".join(chr(code) for low, high in _INVISIBLE_RANGES for code in range(low, high + 1))


def clean_text(text: str) -> str:
    """Remove NUL and replace each lone surrogate by U+FFFD, so that any database takes it."""
    if "\0" in text:
        text = text.replace("\0", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def clean_name(value: object) -> str:
    """Return a trimmed name, or "" when it is missing or nothing of it can be seen."""
    name = clean_text(_scalar(value))
    return name.strip()[:NAME_LIMIT] if name.strip(_INVISIBLE) else ""


def one_line(value: object, limit: int = LABEL_LIMIT) -> str:
    """Return a text or number on one line of at most `limit` characters; "" for anything else."""
    text = clean_text(_scalar(value)[: limit * 4])
    text = " ".join(_STEERING.sub(" ", text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def tag(label: str, text: str = "") -> str:
    """Write `[label: text]`, or `[label]` when there is no text."""
    return f"[{label}: {text}]" if text else f"[{label}]"


def _scalar(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    # Python refuses to write integers of thousands of digits.
    return str(value) if abs(value) < 1 << 64 else ""

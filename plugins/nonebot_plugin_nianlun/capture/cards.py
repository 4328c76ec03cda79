"""What a shared card says, as one bracketed line: `[小程序: 哔哩哔哩 - 十分钟学会做红烧肉]`."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from html import unescape
import json
import re
from typing import Any

from .cleaning import one_line, tag

CARD_LIMIT = 65_536
"""Longest card that is read, in characters; QQ's own are a few thousand."""

_LABELS = {
    "detail_1": "小程序",
    "news": "分享",
    "music": "音乐",
    "mannounce": "群公告",
    "Location.Search": "位置",
}
_TITLES = ("title", "name", "nickname")
_DETAILS = ("desc", "text", "address")
_XML_TITLE = re.compile(r"<title[^<>]*>([^<]*)<", re.IGNORECASE)
_XML_BRIEF = re.compile(r"\bbrief=(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)


def json_card(data: object) -> str:
    """Read a `json` segment's payload: QQ's card format, as text or already parsed."""
    card = _parsed(data)
    if card.get("app") == "com.tencent.multimsg":
        return "[聊天记录]"
    label, rest = _prompt(card.get("prompt"))
    for key, body in _mapping(card.get("meta")).items():
        if isinstance(body, Mapping) and (text := _body_text(body)):
            return tag(_label_of(key, body) or label, text)
    return tag(label, rest or one_line(card.get("desc")))


def xml_card(data: object) -> str:
    """Read an `xml` segment's payload: its first title, else the summary it shows in a list."""
    text = data[:CARD_LIMIT] if isinstance(data, str) else ""
    if (found := _XML_TITLE.search(text)) and (title := one_line(unescape(found[1]))):
        return tag("卡片", title)
    brief = _XML_BRIEF.search(text)
    return tag(*_prompt(unescape(brief[1] or brief[2] or "") if brief else ""))


def _parsed(data: object) -> Mapping[str, Any]:
    if isinstance(data, str) and len(data) <= CARD_LIMIT:
        try:
            data = json.loads(data)
        except (ValueError, RecursionError):
            return {}
    return _mapping(data)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _prompt(value: object) -> tuple[str, str]:
    """Split QQ's list summary `[QQ小程序]哔哩哔哩` into its label and its text."""
    text = one_line(value)
    label, closed, rest = text[1:].partition("]")
    if not text.startswith("[") or not closed or len(label) > 10:
        return "卡片", text
    return label.removeprefix("QQ").strip() or "卡片", rest.strip()


def _label_of(key: str, body: Mapping[str, Any]) -> str | None:
    if key == "contact":
        return "推荐群" if "群" in one_line(body.get("tag")) else "推荐好友"
    return _LABELS.get(key)


def _body_text(body: Mapping[str, Any]) -> str:
    title = _first(body, _TITLES)
    detail = _first(body, _DETAILS)
    if one_line(body.get("encode")) == "1":
        title, detail = _decoded(title), _decoded(detail)
    parts = [title, detail] if title != detail else [title]
    return one_line(" - ".join(part for part in map(one_line, parts) if part))


def _first(body: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = body.get(key)
        if isinstance(value, str) and one_line(value):
            return value
    return ""


def _decoded(text: str) -> str:
    """Group announcements carry their text in Base64."""
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return text

"""The elements of a message of QQ's new client (QQNT), in its exports and its database."""

from __future__ import annotations

from collections.abc import Callable
import json
import re

from ..capture.cleaning import one_line, tag
from ..types import Segment

QUOTED = "[被引用的消息]"
NOTICE = "[提示]"
CARD = "[应用消息]"
CUT_CARD, CUT_CARD_TEXT = "[", "应"
"""All that the text export has of a card: the first two characters of what it would have been."""


def labelled(label: str, text: str) -> Segment | None:
    """An element that an exporter wrote as a label and a text; None for what says nothing.

    What is quoted is somebody else's, and is said elsewhere.
    """
    writer = _WRITERS.get(label)
    return None if writer is None else writer(text)


def is_label(line: str, after: str) -> bool:
    """Whether a line stands before an element's text, of which the first line is `after`.

    Somebody may type `[图片]`; the name of a picture's file below it will hardly follow.
    """
    label = line.removeprefix(QUOTED)
    if label == CUT_CARD:
        return after == CUT_CARD_TEXT
    if label != line:
        return label in _WRITERS or (not label and after == "None")
    shape = _SHAPES.get(label)
    return label in _WRITERS and (shape is None or shape.search(after) is not None)


def begins_label(line: str) -> bool:
    """Whether it is such a line, or the beginning of one."""
    label = line.removeprefix(QUOTED)
    return line != "" and any(one.startswith(label) for one in (QUOTED, *_WRITERS))


def text_segment(text: str) -> Segment:
    return {"type": "text", "data": {"text": text}}


def picture(file: str, summary: str = "") -> Segment:
    data = {"file": file} if file else {}
    return {"type": "image", "data": data | ({"summary": summary} if summary else {})}


def face(name: str, number: int | str | None) -> Segment:
    data = {} if number is None else {"id": str(number)}
    return {"type": "face", "data": data | {"raw": {"faceText": name}}}


def notice(info: str) -> str:
    """The words of the grey line that the client draws from XML or JSON, as people see it."""
    if info.lstrip().startswith("{"):
        try:
            items = json.loads(info.replace("\\/", "/")).get("items", [])
        except (ValueError, AttributeError, RecursionError):
            return ""
        parts = [item.get("txt") or item.get("nm") for item in items if isinstance(item, dict)]
        words = [part for part in parts if isinstance(part, str)]
    else:
        words = [one or two for one, two in _TXT.findall(info)]
    return " ".join(" ".join(words).split())


_TXT = re.compile(r"""\b(?:txt|nm)=(?:"([^"]*)"|'([^']*)')""")
_NUMBERED_FACE = re.compile(r"(.*)-(\d+)", re.DOTALL | re.ASCII)
_SUMMARY = re.compile(r"\[[^\[\]]{1,20}\]")
_SIZE = re.compile(r" (?:[\d.]+ (?:Bytes?|[KMGT]iB)|None)$", re.ASCII)
_SECONDS = re.compile(r"(\d+)″", re.ASCII)


def _face(text: str) -> Segment:
    found = _NUMBERED_FACE.fullmatch(text)
    return face(found[1], found[2]) if found else face(text, None)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _picture(text: str) -> Segment:
    line = _first_line(text)
    summary = _SUMMARY.match(line)
    return picture(line[summary.end() :], summary[0]) if summary else picture(line)


def _voice(text: str) -> Segment:
    found = _SECONDS.match(text)
    return {"type": "record", "data": {"duration": int(found[1])} if found else {}}


def _video(text: str) -> Segment:
    return {"type": "video", "data": {}}


def _file(text: str) -> Segment:
    return {"type": "file", "data": {"name": _SIZE.sub("", _first_line(text))}}


def _wallet(text: str) -> Segment:
    return {"type": "redbag", "data": {"title": _first_line(text)}}


def _card(text: str) -> Segment:
    return {"type": "json", "data": {"data": json.dumps({"prompt": _first_line(text)})}}


def _share(text: str) -> Segment:
    return {"type": "share", "data": {"title": _first_line(text).strip("[]")}}


def _call(text: str) -> Segment:
    return text_segment(tag("通话", one_line(text).strip("-")))


_WRITERS: dict[str, Callable[[str], Segment]] = {
    "[文本]": text_segment,
    "[图片]": _picture,
    "[文件]": _file,
    "[语音]": _voice,
    "[视频]": _video,
    "[表情]": _face,
    NOTICE: text_segment,
    "[红包]": _wallet,
    CARD: _card,
    "[通话]": _call,
    "[动态消息]": _share,
}
_FILE = re.compile(r"\S\.\w{1,8}\b|://|\bCache_|(?:\d (?:Bytes?|[KMGT]iB)|None)$")
_SHAPES = {"[图片]": _FILE, "[文件]": _FILE, "[表情]": re.compile(r"-\d+$", re.ASCII)}

"""The body of a message in the database of QQ's new client: elements with numbered fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import unescape
import re

from ..capture.cleaning import one_line, tag
from ..capture.segments import to_segments
from ..types import Segment
from .protobuf import BrokenMessage, fields
from .qqnt_elements import face, notice, picture, text_segment

_ELEMENT = 40800
_TYPE, _TEXT, _FILE, _SECONDS, _VIDEO_SECONDS = 45002, 45101, 45402, 45906, 45410
_FACE, _FACE_NAME, _CARD, _PICTURE_WORDS = 47601, 47602, 47901, 45815
_NOTICE, _NOTICE_JSON, _CALL, _WALLET, _WALLET_TITLE = 48214, 48271, 48157, 48403, 48443
_QUOTE, _QUOTED_SEQ, _TIP = 7, 47402, 8
_WITHDRAWER, _WITHDRAWER_NAME, _WITHDRAWN_WORDS = 47703, 47705, 47713
_FLASH, _STICKER, _MARKDOWN, _BUBBLE, _PLACE, _XML = 45829, 80900, 48701, 52138, 52152, 48602
_POKE = 47611
_POKES = {1: "戳一戳", 2: "比心", 3: "点赞", 4: "心碎", 5: "666", 6: "放大招"}
_MULTIPLE = re.compile(r"viewMultiMsg|serviceID=[\"']35[\"']")
_TITLE = re.compile(r"<title\b[^>]*>([^<]*)</title>")
_SILENT = frozenset({_QUOTE, 17, 44})
"""Beside quotations: buttons below what a bot says."""
_LINES_SHOWN = 10

Element = Mapping[int, int | bytes]


def elements_of(body: bytes) -> list[Element]:
    """What a message consists of. Raises BrokenMessage for bytes that are none."""
    return [_element(part) for part in _parts(body)]


def is_notice(elements: Sequence[Element]) -> bool:
    """Whether it is a grey line, which nobody has said."""
    return bool(elements) and all(one.get(_TYPE) == _TIP for one in elements)


def is_withdrawal(elements: Sequence[Element]) -> bool:
    """Whether it is what the client keeps of a message that was taken back."""
    return any(_WITHDRAWER in one for one in elements)


def quoted_seq(elements: Sequence[Element]) -> int:
    """The `seq` of what a message answers, as its quotation tells it."""
    for element in elements:
        seq = element.get(_QUOTED_SEQ)
        if element.get(_TYPE) == _QUOTE and isinstance(seq, int):
            return seq
    return 0


def segments_of(elements: Sequence[Element], replied: int | None) -> list[Segment]:
    """The message; `replied` is the id of the one that it answers."""
    segments: list[Segment] = []
    if replied:
        segments.append({"type": "reply", "data": {"id": str(replied)}})
    for element in elements:
        kind = element.get(_TYPE)
        if isinstance(kind, int) and kind not in _SILENT:
            segments.append(_WRITERS.get(kind, _unknown)(element))
    return to_segments(segments)


def _parts(body: bytes) -> Iterator[bytes]:
    for number, value in fields(body):
        if number == _ELEMENT and isinstance(value, bytes):
            yield value


def _element(part: bytes) -> Element:
    found: dict[int, int | bytes] = {}
    for number, value in fields(part):
        found.setdefault(number, value)
    return found


def _string(element: Element, field: int) -> str:
    value = element.get(field)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _typed(element: Element) -> Segment:
    return text_segment(_string(element, _TEXT))


def _picture(element: Element) -> Segment:
    found = picture(_string(element, _FILE), _string(element, _PICTURE_WORDS))
    if element.get(_FLASH) == 1:
        found["data"]["type"] = "flash"
    return found


def _file(element: Element) -> Segment:
    return {"type": "file", "data": {"name": _string(element, _FILE)}}


def _voice(element: Element) -> Segment:
    return {"type": "record", "data": {"duration": element.get(_SECONDS, 0)}}


def _video(element: Element) -> Segment:
    return {"type": "video", "data": {"duration": element.get(_VIDEO_SECONDS, 0)}}


def _face(element: Element) -> Segment:
    number, poke = element.get(_FACE), element.get(_POKE)
    name = _string(element, _FACE_NAME) or (_POKES.get(poke, "") if isinstance(poke, int) else "")
    return face(name, number if isinstance(number, int) else None)


def _tip(element: Element) -> Segment:
    if _WITHDRAWER in element:
        who, why = (_string(element, one) for one in (_WITHDRAWER_NAME, _WITHDRAWN_WORDS))
        return text_segment(" ".join(filter(None, (who, "撤回了一条消息", one_line(why)))))
    words = notice(_string(element, _NOTICE)) or notice(_string(element, _NOTICE_JSON))
    return text_segment(words or tag("提示"))


def _wallet(element: Element) -> Segment:
    inner = element.get(_WALLET)
    title = ""
    if isinstance(inner, bytes):
        try:
            title = _string(_element(inner), _WALLET_TITLE)
        except BrokenMessage:
            title = ""
    return {"type": "redbag", "data": {"title": title}}


def _card(element: Element) -> Segment:
    return {"type": "json", "data": {"data": _string(element, _CARD)}}


def _call(element: Element) -> Segment:
    return text_segment(tag("通话", one_line(_string(element, _CALL))))


def _feed(element: Element) -> Segment:
    return text_segment(tag("动态消息"))


def _forward(element: Element) -> Segment:
    xml = _string(element, _XML)
    if xml and not _MULTIPLE.search(xml):
        return {"type": "xml", "data": {"data": xml}}
    # The first title is the card's own, the others are the first lines of what was forwarded.
    lines = [unescape(title).split(": ", 1) for title in _TITLE.findall(xml)[1:_LINES_SHOWN]]
    nodes = [
        {"type": "node", "data": {"nickname": line[0], "content": line[1]}}
        for line in lines
        if len(line) > 1
    ]
    return {"type": "forward", "data": {"content": nodes}}


def _sticker(element: Element) -> Segment:
    return {"type": "mface", "data": {"summary": _string(element, _STICKER)}}


def _markdown(element: Element) -> Segment:
    return {"type": "markdown", "data": {"content": _string(element, _MARKDOWN)}}


def _bubble(element: Element) -> Segment:
    return text_segment(one_line(_string(element, _BUBBLE)) or tag("表情"))


def _place(element: Element) -> Segment:
    return {"type": "location", "data": {"title": _string(element, _PLACE)}}


def _unknown(element: Element) -> Segment:
    return text_segment(tag("消息"))


_WRITERS: dict[int, Callable[[Element], Segment]] = {
    1: _typed,
    2: _picture,
    3: _file,
    4: _voice,
    5: _video,
    6: _face,
    8: _tip,
    9: _wallet,
    10: _card,
    11: _sticker,
    14: _markdown,
    16: _forward,
    21: _call,
    26: _feed,
    27: _bubble,
    28: _place,
}

"""Our own export, JSON Lines: the only format that brings a whole memory back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
import json
from typing import Any, BinaryIO, NoReturn, TypeGuard, cast, get_args
from zoneinfo import ZoneInfo

from ..capture.cleaning import clean_text
from ..capture.segments import to_segments
from ..errors import ImportFileError
from ..memory.vault_pages import END
from ..types import ME, ChatKind, Delivery, Segment, Source, Via
from .found import Found, FoundChat, FoundMessage, FoundRecord, Unreadable
from .records import shown_name

VERSION = 1
LINE_LIMIT = 1 << 26
"""Longest line that is read, in bytes; a merged forward can fill some megabytes."""

_KINDS = frozenset({"group", "private", "store"})
_FIRST_LINES = frozenset({"header", "settings", "speaker", "message", "activity"})
_SOURCES = get_args(Source)
_LARGEST = (1 << 63) - 1
_NO_HEADER = "开头没有年轮导出的 header 行，不知道是哪个会话；请用完整的导出文件"


class _Odd(ValueError):
    """Something of a line is not what it must be; the text says what."""


def _refuse_constant(_: str) -> NoReturn:
    raise _Odd("不是合格的 JSON")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode


class Native:
    name = "nianlun"
    title = "年轮自己导出的 JSON Lines"

    def recognises(self, head: bytes) -> bool:
        first = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
        try:
            data = _object(first)
        except _Odd:
            return False
        kind = data.get("type")
        return isinstance(kind, str) and kind in _FIRST_LINES

    def read(self, file: BinaryIO, zone: ZoneInfo) -> Iterator[Found]:
        last: int | None = None
        """The short id of the newest message; None until there is a header."""
        ending = _Ending()
        for place, (line, raw) in enumerate(_lines(file)):
            try:
                data = _object(raw)
                kind = data.get("type")
                if kind == "header":
                    ending.begin(place, data)
                    yield _chat(data)
                    last = 0
                if last is None:
                    raise ImportFileError(_NO_HEADER)
                if kind == END:
                    ending.end(place, data)
                elif kind == "message":
                    message = _message(data, line)
                    if message.seq is not None and message.seq > last:
                        last = message.seq
                    else:
                        # Its words are worth more than what refers to it.
                        message = replace(message, seq=None)
                        yield Unreadable(line, f"seq 不是比前一条（{last}）大的整数，换了编号")
                    yield message
                else:
                    yield _record(data, line)
            except _Odd as error:
                if last is None:
                    raise ImportFileError(f"{_NO_HEADER}（第 {line} 行：{error}）") from None
                yield Unreadable(line, str(error))
        if last is None:
            raise ImportFileError(_NO_HEADER)
        ending.check()


class _Ending:
    """Whether all of an export is there: its header announces a last line, which counts all."""

    def __init__(self) -> None:
        self._begins = 0
        self._awaited = False

    def begin(self, place: int, header: Mapping[str, Any]) -> None:
        """Raises ImportFileError when the export before it, in the same file, has no end."""
        self.check()
        self._begins, self._awaited = place, header.get("ends_with") == END

    def end(self, place: int, data: Mapping[str, Any]) -> None:
        """Raises ImportFileError when there are more or fewer lines before it than it says."""
        count = place - self._begins
        if self._awaited and data.get("records") != count:
            raise ImportFileError(
                f"文件像是缺了一部分：最后一行说的行数，和前面的 {count} 行对不上，请重新导出一份"
            )
        self._awaited = False

    def check(self) -> None:
        if self._awaited:
            raise ImportFileError(
                f"文件像是没有写完：没有最后那行 {END}，请重新导出一份，或重新下载、复制"
            )


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, numbered; of one that is too long only the beginning."""
    number, whole = 0, True
    while raw := file.readline(LINE_LIMIT):
        if whole:
            number += 1
            if raw.strip():
                yield number, raw
        whole = raw.endswith(b"\n")


def _object(raw: bytes) -> dict[str, Any]:
    try:
        data = _decode(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise _Odd("不是 UTF-8 编码的文字") from None
    except (ValueError, RecursionError):
        raise _Odd("不是合格的 JSON") from None
    if not isinstance(data, dict):
        raise _Odd("不是一个 JSON 对象")
    return data


def _chat(data: Mapping[str, Any]) -> FoundChat:
    """Read a header; without a usable one nothing after it has a place to go."""
    version = data.get("version")
    if data.get("format") != "nianlun" or not _is_number(version) or version < 1:
        raise ImportFileError(f"header 行里的 format 或 version 不对；{_NO_HEADER}")
    if version > VERSION:
        raise ImportFileError(
            f"这个文件是更新版本的年轮导出的（格式版本 {version}，现在只认识到 {VERSION}）；"
            "请先升级年轮再导入"
        )
    chat, self_id = data.get("chat"), data.get("self_id")
    kind, _, peer_id = chat.partition(":") if isinstance(chat, str) else ("", "", "")
    if kind not in _KINDS or not peer_id.strip() or not isinstance(self_id, str):
        raise ImportFileError("header 行里的 chat 或 self_id 不对，不知道是哪个会话")
    return FoundChat(cast("ChatKind", kind), None, clean_text(peer_id), clean_text(self_id))


def _record(data: dict[str, Any], line: int) -> FoundRecord:
    kind = data.get("type")
    if not isinstance(kind, str):
        raise _Odd("没有写这一行是什么（type）")
    try:
        return FoundRecord(line, clean_text(kind), _clean(data))
    except RecursionError:
        raise _Odd("括号套得太深") from None


def _clean(value: Any) -> Any:
    """JSON can carry NUL and lone surrogates, which no database takes."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): _clean(item) for key, item in value.items()}
    return value


def _message(data: Mapping[str, Any], line: int) -> FoundMessage:
    user_id = _text(data, "user_id")
    if not user_id.strip() or (user_id.lower() == ME and user_id != ME):
        raise _Odd("user_id 不能用")
    text, segments = _text(data, "text"), _segments(data.get("segments"))
    name = _text(data, "name")
    # Whoever was forgotten or is not recorded has neither words nor a name.
    wordless = not (name or text or segments)
    return FoundMessage(
        line=line,
        time=_time(data.get("time")),
        user_id=user_id,
        name="" if wordless else shown_name(name, user_id),
        segments=segments,
        message_id=_optional_text(data, "message_id"),
        order=_order(data),
        reply_to_id=_optional_text(data, "reply_to_id"),
        withdrawn=_withdrawn(data),
        withdrawn_at=_time(data["withdrawn_at"]) if data.get("withdrawn_at") else None,
        text=text,
        seq=_seq(data, "seq"),
        reply_to=_seq(data, "reply_to"),
        via=cast("Via | None", _one_of(data, "via", None, "nianlun", "other")),
        delivery=cast("Delivery", _one_of(data, "delivery", "ok", "unknown")),
        source=cast("Source", _one_of(data, "source", "import", *_SOURCES)),
    )


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _seq(data: Mapping[str, Any], key: str) -> int | None:
    value = data.get(key)
    if value is None:
        return None
    if not _is_number(value) or not 0 < value <= _LARGEST:
        raise _Odd(f"{key} 不是正整数")
    return value


def _order(data: Mapping[str, Any]) -> int | None:
    value = data.get("order")
    if value is not None and not (_is_number(value) and abs(value) <= _LARGEST):
        raise _Odd("order 不是整数")
    return value


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise _Odd(f"{key} 不是文字")
    return clean_text(value)


def _optional_text(data: Mapping[str, Any], key: str) -> str | None:
    return None if data.get(key) is None else _text(data, key)


def _withdrawn(data: Mapping[str, Any]) -> bool:
    value = data.get("withdrawn", False)
    if not isinstance(value, bool):
        raise _Odd("withdrawn 不是 true 或 false")
    return value


def _one_of(data: Mapping[str, Any], key: str, default: str | None, *others: str) -> str | None:
    value = data.get(key, default)
    if value != default and value not in others:
        raise _Odd(f"{key} 的值不认识")
    return value


def _time(value: object) -> datetime:
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
        if time is not None and time.tzinfo is not None:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise _Odd("time 不是带时区的时间")


def _segments(value: object) -> list[Segment]:
    if not isinstance(value, list):
        raise _Odd("segments 不是列表")
    segments = to_segments(value)
    if len(segments) != len(value) or not all(isinstance(item, dict) for item in value):
        raise _Odd("segments 里有不是消息段的东西")
    return segments

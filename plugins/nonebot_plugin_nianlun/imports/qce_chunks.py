"""qq-chat-exporter's chunked export: a manifest, and beside it the messages in files of lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
import os
from pathlib import Path, PurePosixPath
import re
from typing import Any, BinaryIO
from zoneinfo import ZoneInfo

from ..errors import ImportFileError
from .found import Found, FoundChat, Unreadable
from .json_lines import objects
from .json_stream import JsonStream
from .qce_messages import chat_of, message, with_peer
from .text_lines import decoded

MANIFEST = "manifest.json"

_HEAD = re.compile(r'\s*\{\s*"(?:metadata|chatInfo|chunked)"\s*:')
_FORMAT = re.compile(r'"chunked"\s*:\s*\{|"format"\s*:\s*"chunked-jsonl"')
_LINE = re.compile(
    r'\s*\{"(?:id"\s*:\s*"\d+"\s*,\s*"seq|messageId"\s*:\s*"\d+"\s*,\s*"messageSeq)"\s*:'
    r'[^{}]*"sender"\s*:'
)
_LOOK_EVERY = 500


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A file of messages, and what the manifest says of it."""

    path: Path
    shown: str
    count: int | None
    size: int


class QceChunks:
    name = "qce-chunks"
    title = "qq-chat-exporter（5.x、6.x）的分块导出（给出文件夹或其中的 manifest.json）"

    def recognises(self, head: bytes) -> bool:
        text = decoded(head)
        return _HEAD.match(text) is not None and _FORMAT.search(text) is not None

    def read(self, file: BinaryIO, zone: ZoneInfo) -> Iterator[Found]:
        chat, chunks = _manifest(file)
        yield _with_peer(chat, chunks)
        whole = sum(chunk.size for chunk in chunks) or 1
        before, size = 0, os.fstat(file.fileno()).st_size
        for chunk in chunks:
            with chunk.path.open("rb") as lines:
                for count, found in enumerate(_messages(chunk, lines), 1):
                    if count % _LOOK_EVERY == 0:
                        # Whoever shows progress looks at how far the manifest is read.
                        file.seek(min(size, (before + lines.tell()) * size // whole))
                    yield found
            before += chunk.size


def is_chunk(text: str) -> bool:
    """Whether a file that begins so is one of the parts, which say not whose they are."""
    return _LINE.match(text) is not None


def _messages(chunk: _Chunk, lines: BinaryIO) -> Iterator[Found]:
    where = f"{chunk.shown} "
    count = 0
    for number, value in objects(lines, where, whole_file=True):
        count += 1
        found = value if isinstance(value, Unreadable) else message(value, number)
        if isinstance(found, Unreadable) and found is not value:
            found = replace(found, reason=f"{where}{found.reason}")
        yield found
    if chunk.count not in (None, count):
        raise ImportFileError(
            f"{chunk.shown} 里有 {count} 条消息，manifest 说有 {chunk.count} 条："
            "文件多半没有复制完整，请重新导出一份"
        )


def _manifest(file: BinaryIO) -> tuple[FoundChat, Sequence[_Chunk]]:
    stream = JsonStream(file)
    chat: FoundChat | None = None
    entries: object = None
    for key in stream.members():
        if key == "chatInfo":
            chat = chat_of(stream.value())
        elif key == "chunked":
            chunked = stream.value()
            entries = chunked.get("chunks") if isinstance(chunked, dict) else entries
        elif key == "chunks":
            entries = stream.value()
        else:
            stream.skip()
    stream.finish()
    if chat is None:
        raise ImportFileError("manifest 里没有 chatInfo，不知道是哪个会话")
    if not isinstance(entries, list):
        raise ImportFileError("manifest 里没有 chunks，不知道消息在哪些文件里")
    folder = Path(os.fspath(file.name)).resolve().parent
    return chat, [_chunk(folder, entry) for entry in sorted(entries, key=_index)]


def _index(entry: object) -> int:
    index = entry.get("index") if isinstance(entry, dict) else None
    return index if isinstance(index, int) else 0


def _with_peer(chat: FoundChat, chunks: Sequence[_Chunk]) -> FoundChat:
    """The chat with the number that its first message may have."""
    for chunk in chunks[:1] if chat.peer_id is None else ():
        with chunk.path.open("rb") as lines:
            return with_peer(chat, next((value for _, value in objects(lines)), None))
    return chat


def _chunk(folder: Path, entry: object) -> _Chunk:
    fields: Mapping[str, Any] = entry if isinstance(entry, dict) else {}
    shown = next((fields[k] for k in ("relativePath", "file", "fileName") if fields.get(k)), None)
    if not isinstance(shown, str) or "\0" in shown:
        raise ImportFileError("manifest 里有一块没有写文件名")
    inside = PurePosixPath(shown.replace("\\", "/"))
    places = (folder / inside, folder / "chunks" / inside)
    path = next((one for one in places if one.is_file()), places[0]).resolve()
    if not path.is_relative_to(folder):
        raise ImportFileError(f"manifest 里的 {shown[:200]} 不在它的文件夹里")
    if not path.is_file():
        raise ImportFileError(f"缺了 {shown[:200]}，它应该和 manifest 放在一起")
    count = next((fields[k] for k in ("count", "messages") if isinstance(fields.get(k), int)), None)
    return _Chunk(path, shown[:200], count, path.stat().st_size)

"""qq-chat-exporter's single JSON file, as its versions 4 to 6 write it."""

from __future__ import annotations

from collections.abc import Iterator
import re
from typing import BinaryIO
from zoneinfo import ZoneInfo

from ..errors import ImportFileError
from .found import Found, FoundChat
from .json_stream import JsonStream
from .qce_chunks import QceChunks
from .qce_messages import chat_of, message, with_peer
from .text_lines import decoded

_HEAD = re.compile(
    r'\s*\{\s*"(?:metadata"\s*:\s*\{\s*(?:[^{}]*"QQChatExporter|"mergedAt"\s*:)|chatInfo"\s*:\s*\{)'
)
_NO_CHAT = "messages 之前没有 chatInfo，不知道是哪个会话"


class QceJson:
    name = "qce-json"
    title = "qq-chat-exporter（4.x 到 6.x）导出的单个 JSON 文件"

    def recognises(self, head: bytes) -> bool:
        return _HEAD.match(decoded(head)) is not None and not QceChunks().recognises(head)

    def read(self, file: BinaryIO, zone: ZoneInfo) -> Iterator[Found]:
        stream = JsonStream(file)
        chat: FoundChat | None = None
        complete = False
        for key in stream.members():
            if key == "chatInfo":
                chat = chat_of(stream.value())
            elif key == "metadata":
                metadata = stream.value()
                if isinstance(metadata, dict) and "mergedAt" in metadata:
                    # Backups put together are told nothing of: whoever imports them says it.
                    chat = FoundChat("group")
            elif key == "chunked":
                # In a large group the statistics alone are longer than what is looked at.
                file.seek(0)
                yield from QceChunks().read(file, zone)
                return
            elif key == "messages":
                if chat is None:
                    raise ImportFileError(_NO_CHAT)
                yield from _messages(stream, chat)
                complete = True
            else:
                stream.skip()
        stream.finish()
        if not complete:
            raise ImportFileError("这个 JSON 文件里没有 messages，不是 qq-chat-exporter 的聊天记录")


def _messages(stream: JsonStream, chat: FoundChat) -> Iterator[Found]:
    told = False
    for number, _ in enumerate(stream.items(), 1):
        line = stream.line()
        raw = stream.value()
        if not told:
            # Earlier versions have the number of a group in its messages alone.
            yield with_peer(chat, raw)
            told = True
        # A whole file may be one line.
        yield message(raw, line, f"第 {number} 条")
    if not told:
        yield chat

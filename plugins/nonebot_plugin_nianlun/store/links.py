"""Links between chats of one account: a search in either also looks in the other.

Nothing else crosses. A link stands for both chats or for none, and is read anew by every search,
so that taking it away works at once and in every process.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
import sqlite3

from ..errors import ChatError
from ..memory.render import safe_name
from ..types import ChatKey
from . import sql
from .database import transactional
from .models import Chat, ChatLink

MOST = 8
"""Links of one chat: each is searched before every reply."""
_LINKED = (
    "SELECT chat.id, chat.self_id, chat.kind, chat.peer_id, CASE chat.kind WHEN 'private' THEN"
    " (SELECT name FROM nianlun_speaker WHERE chat_id = chat.id AND user_id = chat.peer_id)"
    " ELSE chat.name END FROM nianlun_chat_link AS link JOIN nianlun_chat AS chat"
    " ON chat.id = link.other_id WHERE link.chat_id = ? ORDER BY link.id"
)


@dataclass(frozen=True, slots=True)
class Linked:
    """A chat that may be looked into."""

    chat_id: int
    key: ChatKey
    place: str
    """As a person would say it, no two alike: `群「摸鱼研究所」`, `和 小鹿 的私聊`."""


@transactional
async def link(one: int, other: int, by: str, now: datetime) -> bool:
    """Let searches in either chat look into the other; False when they did already.

    Raises ChatError for chats that cannot be linked.
    """
    await sql.move_last_seqs(dict.fromkeys(sorted((one, other)), 0))
    first, second = await Chat.get(id=one), await Chat.get(id=other)
    if one == other:
        raise ChatError("要连通的是另一个会话，不是这一个")
    if first.self_id != second.self_id or "store" in (first.kind, second.kind):
        raise ChatError("只能连通同一个机器人账号的群和私聊")
    if await ChatLink.filter(chat_id=one, other_id=other).exists():
        return False
    for chat_id in (one, other):
        if await ChatLink.filter(chat_id=chat_id).count() >= MOST:
            raise ChatError(f"一个会话最多连通 {MOST} 个，请先断开用不着的")
    for chat_id, other_id in ((one, other), (other, one)):
        await ChatLink.create(chat_id=chat_id, other_id=other_id, linked_by=by, created_at=now)
    return True


@transactional
async def unlink(one: int, other: int) -> bool:
    """Take the link away; False when there is none."""
    gone = await ChatLink.filter(chat_id=one, other_id=other).delete()
    return bool(gone + await ChatLink.filter(chat_id=other, other_id=one).delete())


def linked(connection: sqlite3.Connection, chat_id: int) -> list[Linked]:
    """The chats that searches in this one look into, in the order in which they were linked.

    Plain, as every search is: it stands before each.
    """
    found = [
        (other, ChatKey(self_id, kind, peer_id), safe_name(name or peer_id))
        for other, self_id, kind, peer_id, name in connection.execute(_LINKED, (chat_id,))
    ]
    shared = Counter(name for _, _, name in found)
    return [
        Linked(other, key, _place(key, name, alone=shared[name] == 1)) for other, key, name in found
    ]


def _place(key: ChatKey, name: str, *, alone: bool) -> str:
    told = name if alone else f"{name}（{key.peer_id}）"
    return f"和 {told} 的私聊" if key.kind == "private" else f"群「{told}」"

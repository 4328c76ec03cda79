"""Who may use which command."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..types import ChatKind

Right: TypeAlias = Literal["all", "read", "govern", "own", "owner"]
"""Who may use a command, about the chat in which it is said:

- `all`: everybody
- `read`: members of a group unless its memory is closed to them, and whoever governs
- `govern`: owner and admins of a group, the peer of a private chat, superusers
- `own`: everybody, about themselves alone
- `owner`: superusers alone
"""
Role: TypeAlias = Literal["owner", "admin", "member", ""]
"""A speaker's rank in the group; empty where there is none."""

RIGHT_NAMES: dict[Right, str] = {
    "all": "所有人",
    "read": "大家",
    "govern": "管理",
    "own": "自己",
    "owner": "主人",
}
_REFUSALS: dict[Right, str] = {
    "all": "这条指令谁都可以用。",
    "read": "只有群主、管理员和机器人的主人可以看这个群的记忆。",
    "govern": "只有群主、管理员和机器人的主人可以用这条指令。",
    "own": "这条指令只能说自己。",
    "owner": "只有机器人的主人可以用这条指令。",
}


def may(
    right: Right, *, is_superuser: bool, role: Role, kind: ChatKind, members_read: bool
) -> bool:
    """Whether the speaker may use what wants `right` about the chat in which it was said."""
    if right == "all":
        return True
    if right == "own":
        return kind != "store"
    if is_superuser:
        return True
    if right == "owner":
        return False
    if kind == "private":
        return True
    if kind != "group":
        return False
    if role in ("owner", "admin"):
        return True
    return role == "member" and members_read and right == "read"


def refusal(right: Right) -> str:
    """The one line that says who may."""
    return _REFUSALS[right]

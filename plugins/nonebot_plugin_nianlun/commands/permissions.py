"""Who may use which command."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..types import ChatKind

Verb: TypeAlias = Literal[
    "帮助", "状态", "今天", "昨天", "日期", "整理", "核对", "别记我", "可以记我", "忘记我"
]
"""The commands under `/记忆`; `日期` stands for a day, a month or a year."""
Role: TypeAlias = Literal["owner", "admin", "member", ""]
"""A speaker's rank in the group; empty where there is none."""

READING: frozenset[Verb] = frozenset({"帮助", "今天", "昨天", "日期"})
"""What an ordinary member may use unless the setting `members_read` is off."""

ABOUT_ONESELF: frozenset[Verb] = frozenset({"别记我", "可以记我", "忘记我"})
"""What everybody may ask for, about themselves alone."""


def may(verb: Verb, *, is_superuser: bool, role: Role, kind: ChatKind, members_read: bool) -> bool:
    """Whether the speaker may use `verb` about the chat in which it was said."""
    if verb in ABOUT_ONESELF:
        return kind != "store"
    if is_superuser or kind == "private":
        return True
    if kind != "group":
        return False
    if role in ("owner", "admin"):
        return True
    return role == "member" and members_read and verb in READING


def refusal(verb: Verb) -> str:
    """The one line that says who may."""
    what = "看这个群的记忆" if verb in READING else "用这条指令"
    return f"只有群主、管理员和机器人的主人可以{what}。"

"""Who may use which command, as one table."""

from __future__ import annotations

import pytest

from plugins.nonebot_plugin_nianlun.commands.permissions import (
    ABOUT_ONESELF,
    READING,
    Role,
    Verb,
    may,
    refusal,
)
from plugins.nonebot_plugin_nianlun.types import ChatKind

VERBS: tuple[Verb, ...] = ("帮助", "状态", "今天", "昨天", "日期", "整理", "核对")
OWN: set[Verb] = {"别记我", "可以记我", "忘记我"}
ALL: set[Verb] = set(VERBS)
READ: set[Verb] = {"帮助", "今天", "昨天", "日期"}
NONE: set[Verb] = set()

# superuser, role, kind of chat: allowed with members_read, allowed without
TABLE: list[tuple[bool, Role, ChatKind, set[Verb], set[Verb]]] = [
    (True, "member", "group", ALL, ALL),
    (True, "", "group", ALL, ALL),
    (True, "", "private", ALL, ALL),
    (True, "", "store", ALL, ALL),
    (False, "owner", "group", ALL, ALL),
    (False, "admin", "group", ALL, ALL),
    (False, "member", "group", READ, NONE),
    (False, "", "group", NONE, NONE),
    (False, "", "private", ALL, ALL),
    (False, "member", "private", ALL, ALL),
    (False, "owner", "store", NONE, NONE),
    (False, "", "store", NONE, NONE),
]


@pytest.mark.parametrize(("is_superuser", "role", "kind", "open_to", "closed_to"), TABLE)
def test_table(
    is_superuser: bool, role: Role, kind: ChatKind, open_to: set[Verb], closed_to: set[Verb]
) -> None:
    for members_read, expected in ((True, open_to), (False, closed_to)):
        allowed = {
            verb
            for verb in VERBS
            if may(verb, is_superuser=is_superuser, role=role, kind=kind, members_read=members_read)
        }
        assert allowed == expected


@pytest.mark.parametrize(("is_superuser", "role", "kind", "open_to", "closed_to"), TABLE)
def test_everybody_may_speak_for_themselves(
    is_superuser: bool, role: Role, kind: ChatKind, open_to: set[Verb], closed_to: set[Verb]
) -> None:
    """Whoever they are and whatever they may read; a store has nobody who speaks."""
    assert ABOUT_ONESELF == OWN
    for members_read in (True, False):
        allowed = {
            verb
            for verb in OWN
            if may(verb, is_superuser=is_superuser, role=role, kind=kind, members_read=members_read)
        }
        assert allowed == (set() if kind == "store" else OWN)


def test_a_refusal_is_one_line_that_names_who_may() -> None:
    for verb in VERBS:
        assert "\n" not in refusal(verb)
        assert "群主、管理员" in refusal(verb)
    assert refusal("今天") != refusal("整理")


def test_nothing_that_changes_the_memory_is_for_reading() -> None:
    assert READING == READ

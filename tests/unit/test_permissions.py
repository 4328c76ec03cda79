"""Who may use which command, as one table."""

from __future__ import annotations

import pytest

from plugins.nonebot_plugin_nianlun.commands.permissions import (
    RIGHT_NAMES,
    Right,
    Role,
    may,
    refusal,
)
from plugins.nonebot_plugin_nianlun.types import ChatKind

RIGHTS: tuple[Right, ...] = ("all", "read", "govern", "own", "owner")
ALL: set[Right] = set(RIGHTS)
GOVERN: set[Right] = {"all", "read", "govern", "own"}
READ: set[Right] = {"all", "read", "own"}
OWN: set[Right] = {"all", "own"}
STORE: set[Right] = {"all", "read", "govern", "owner"}
NONE: set[Right] = {"all"}

# superuser, role, kind of chat: what they may where members read, and where they do not
TABLE: list[tuple[bool, Role, ChatKind, set[Right], set[Right]]] = [
    (True, "member", "group", ALL, ALL),
    (True, "", "group", ALL, ALL),
    (True, "", "private", ALL, ALL),
    (True, "", "store", STORE, STORE),
    (False, "owner", "group", GOVERN, GOVERN),
    (False, "admin", "group", GOVERN, GOVERN),
    (False, "member", "group", READ, OWN),
    (False, "", "group", OWN, OWN),
    (False, "", "private", GOVERN, GOVERN),
    (False, "member", "private", GOVERN, GOVERN),
    (False, "owner", "store", NONE, NONE),
    (False, "", "store", NONE, NONE),
]


@pytest.mark.parametrize(("is_superuser", "role", "kind", "open_to", "closed_to"), TABLE)
def test_table(
    is_superuser: bool, role: Role, kind: ChatKind, open_to: set[Right], closed_to: set[Right]
) -> None:
    for members_read, expected in ((True, open_to), (False, closed_to)):
        allowed = {
            right
            for right in RIGHTS
            if may(
                right, is_superuser=is_superuser, role=role, kind=kind, members_read=members_read
            )
        }
        assert allowed == expected


def test_a_refusal_is_one_line_that_names_who_may() -> None:
    assert set(RIGHT_NAMES) == ALL
    for right in ("read", "govern", "owner"):
        assert "\n" not in refusal(right)
        assert "主人可以" in refusal(right)
    assert refusal("read") != refusal("govern") != refusal("owner")

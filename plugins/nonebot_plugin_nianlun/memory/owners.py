"""Whom a memory is about."""

from __future__ import annotations

import unicodedata

from ..types import ME

_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})


def owner_id(given: object) -> str:
    """A user id, or `me`, trimmed: an owner that nobody has would outlast being forgotten.

    Raises ValueError for anything else.
    """
    owner = given.strip() if isinstance(given, str) else ""
    unseen = any(unicodedata.category(char) in _UNSEEN for char in owner)
    if not owner or unseen or (owner.lower() == ME and owner != ME):
        raise ValueError(f"no user id: {given!r:.80}")
    return owner

"""How terms stand in the index: with their chat before them, so that none is found from another.

That also keeps the work of a search to its own chat: a term's places are those in one chat.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from itertools import islice
import re
from typing import Final, Literal, TypeAlias

from ..memory.search import SearchKind
from ..memory.terms import index_terms
from ..types import ME

Group: TypeAlias = Literal["m", "n", "f"]
"""Messages, notes and facts, which are ranked apart: what is rare in one need not be in another."""

# As the tokenizer splits: anything else would be several terms, or none. No text has an `@`
# in its terms, or somebody could write what only a speaker's own lines have.
_WHOLE: Final = re.compile("[0-9a-z.\u0080-\ud7ff\ue000-\U0010ffff]+")
_MOST: Final = 200
_GROUPS: Final[dict[SearchKind, Group]] = {"message": "m", "fact": "f"}


def group_of(kind: SearchKind) -> Group:
    return _GROUPS.get(kind, "n")


def term(chat_id: int, group: Group, plain: str) -> str:
    """A term of one chat; the letter ends the number, so no two chats share one."""
    return f"{chat_id}{group}{plain}"


def askable(terms: Iterable[str]) -> list[str]:
    """The first of these terms that can be in the index at all, each once."""
    whole = (plain for plain in dict.fromkeys(terms) if _WHOLE.fullmatch(plain))
    return list(islice(whole, _MOST))


def speaker_term(chat_id: int, group: Group, user_id: str) -> str:
    """What every text of a speaker has. An id may hold anything: most do not stand as they are."""
    plain = user_id == ME or (user_id.isascii() and user_id.isdecimal())
    if plain:
        return term(chat_id, group, f"@{user_id}")
    hashed = sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return term(chat_id, group, f"@h{hashed}")


def terms_of(chat_id: int, kind: SearchKind, text: str, speaker: str | None) -> str:
    """The terms of a document, each once, with a blank between them; "" when it has none."""
    group = group_of(kind)
    before = term(chat_id, group, "")
    terms = f" {before}".join(dict.fromkeys(index_terms(text)))
    if not terms:
        return ""
    said_by = f" {speaker_term(chat_id, group, speaker)}" if speaker else ""
    return f"{before}{terms}{said_by}"


def quoted(found: str) -> str:
    """A term as a string of FTS5's query language, in which nothing is an operator."""
    return '"' + found.replace('"', '""') + '"'

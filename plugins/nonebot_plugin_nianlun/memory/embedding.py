"""Vectors of texts: what is asked of an embedding model, and of a search among its vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..types import Usage
from .search import SearchKind


@dataclass(frozen=True, slots=True)
class Embedded:
    """One vector for each text, in the same order: all as long, finite, of any norm above 0."""

    vectors: Sequence[Sequence[float]]
    usage: Usage = field(default_factory=Usage)


class Embedder(Protocol):
    """A model that makes vectors of texts; texts that mean the same have similar ones."""

    @property
    def model(self) -> str:
        """What tells its vectors from those of other models."""
        ...

    @property
    def free(self) -> bool:
        """Whether it costs no tokens."""
        ...

    async def embed(self, texts: Sequence[str], *, query: bool) -> Embedded:
        """Vectors of questions (`query`), or of what may answer them. Raises ModelError."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Near:
    """Something stored that is near to a text."""

    kind: SearchKind
    ref: int
    score: float
    """How much nearer than the rest of the chat, in standard deviations; above 0."""


class Nearest(Protocol):
    """A search by meaning in one chat."""

    async def nearest(self, chat_id: int, text: str) -> Sequence[Near] | None:
        """What is nearest to the text, best first; None when it cannot be told now. Never
        raises, and takes a bounded time."""
        ...

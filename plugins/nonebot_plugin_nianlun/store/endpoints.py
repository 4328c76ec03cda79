"""What is known of each model endpoint, across restarts and for other processes."""

from __future__ import annotations

from datetime import datetime
import json
import sqlite3
from typing import Any

from tortoise.exceptions import DBConnectionError, OperationalError

from .database import transactional, translate
from .keys import short_id
from .models import Property

_TRAITS = "traits:"
_TROUBLE = "trouble:"
_KEY_LIMIT = 64


class Endpoints:
    """The changes that requests need, by endpoint and model, and what is wrong with an endpoint."""

    async def load(self, endpoint: str, model: str) -> tuple[frozenset[str], datetime] | None:
        """Raises StoreError."""
        told = await _read(_key(_TRAITS, f"{endpoint} {model}"))
        if told is None:
            return None
        return frozenset(told["changes"]), datetime.fromisoformat(told["at"])

    async def save(self, endpoint: str, model: str, changes: frozenset[str], at: datetime) -> None:
        """Raises StoreError."""
        told = {"changes": sorted(changes), "at": at.isoformat()}
        await _write(_key(_TRAITS, f"{endpoint} {model}"), told)

    async def trouble(self, endpoint: str) -> tuple[str, datetime] | None:
        """What is wrong, and since when; None when nothing is known to be. Raises StoreError."""
        told = await _read(_key(_TROUBLE, endpoint))
        return None if told is None else (told["trouble"], datetime.fromisoformat(told["at"]))

    async def set_trouble(self, endpoint: str, trouble: str | None, at: datetime) -> None:
        """Raises StoreError."""
        key = _key(_TROUBLE, endpoint)
        if trouble is None:
            await _remove(key)
        else:
            await _write(key, {"trouble": trouble, "at": at.isoformat()})


async def _read(key: str) -> dict[str, Any] | None:
    try:
        row = await Property.get_or_none(key=key)
    except (OperationalError, DBConnectionError, sqlite3.Error) as error:
        raise translate(error) from error
    return None if row is None else json.loads(row.value)


@transactional
async def _write(key: str, told: dict[str, Any]) -> None:
    row = Property(key=key, value=json.dumps(told, ensure_ascii=False))
    await Property.bulk_create([row], on_conflict=["key"], update_fields=["value"])


@transactional
async def _remove(key: str) -> None:
    await Property.filter(key=key).delete()


def _key(kind: str, name: str) -> str:
    room = _KEY_LIMIT - len(kind)
    return kind + short_id(name, room)[:room]

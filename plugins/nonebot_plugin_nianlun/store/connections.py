"""Which running process has which bot account connected: what other processes know of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from .database import transactional
from .keys import short_id
from .models import Property

CONNECTED = "connected:"
_KEY_LIMIT = 64


class Connection(NamedTuple):
    """What a process says of an account that it has connected."""

    process: str
    """See `processes.this_process`. One that was killed has said nothing since."""
    heard: datetime
    """Until when the account was there."""


@transactional
async def tell(process: str, heard: Mapping[str, datetime]) -> None:
    """Say which accounts a process has connected, and until when each was there.

    What it said before is gone, and what others say stands. Raises StoreError.
    """
    await Property.filter(key__startswith=CONNECTED, value__startswith=f"{process} ").delete()
    if heard:
        said = {_key(id_): f"{process} {at.isoformat()}" for id_, at in heard.items()}
        rows = [Property(key=key, value=value) for key, value in said.items()]
        await Property.bulk_create(rows, on_conflict=["key"], update_fields=["value"])


def read(value: str) -> Connection:
    """What the value of such a property says."""
    process, _, heard = value.rpartition(" ")
    return Connection(process, datetime.fromisoformat(heard))


def _key(self_id: str) -> str:
    room = _KEY_LIMIT - len(CONNECTED)
    return CONNECTED + short_id(self_id, room)[:room]

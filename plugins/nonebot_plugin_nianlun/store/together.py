"""Statements that are handed to the database's thread together.

To hand one over, and to wait until its result is taken up, takes longer than most of them do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
import sqlite3
from typing import Any, NamedTuple

from tortoise.connection import get_connection
from tortoise.exceptions import IntegrityError, OperationalError


class Statement(NamedTuple):
    query: str
    values: Sequence[Any]
    many: bool = False
    """`values` are those of many rows, for each of which it is executed; it returns nothing."""


async def run(*statements: Statement) -> list[list[sqlite3.Row]]:
    """The rows of each, executed in this order. Raises what the ORM does. Those that write belong
    into a transaction."""
    # The ORM's own calls wait for one another.
    async with get_connection("default").acquire_connection() as connection:
        work = (
            connection.executemany(query, values)
            if many
            else connection.execute_fetchall(query, values)
            for query, values, many in statements
        )
        try:
            found = await asyncio.gather(*work)
        except sqlite3.IntegrityError as error:
            raise IntegrityError(error) from error
        except sqlite3.OperationalError as error:
            raise OperationalError(error) from error
    return [[] if one.many else list(rows) for one, rows in zip(statements, found, strict=True)]

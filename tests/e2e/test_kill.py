"""Killed at random moments of whatever it does, the bot loses nothing and does nothing twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.killing import Killing

KILLS, SEED = 20, 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="starts bots by forking a loaded one")
async def test_twenty_kills_lose_nothing_and_leave_no_work_undone(tmp_path: Path) -> None:
    async with Killing(tmp_path / "bot", SEED) as killing:
        for _ in range(KILLS):
            await killing.kill_once()
        await killing.settle()
        assert sum(killing.kills.values()) == KILLS
        assert len(killing.kills) >= 4
        assert sum(said.seen for said in killing.said) > 100
        assert any(said.masked for said in killing.said)
        assert killing.model_calls

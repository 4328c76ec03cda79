"""Every recorded payload goes through the wire once, and its row is what is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.checks import stored, wait_stored
from tests.support.bot_process import BotProcess, Row
from tests.support.onebot_client import OneBotClient

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "onebot"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FIXTURES / "expected.json").read_text("utf-8"))
KNOWN_FIRST = "napcat_group_text_card_empty.json"
"""Shows the name of the person that others are seen to mention."""

Key = tuple[str, str]


def of_kind(kind: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, row) for name, row in sorted(EXPECTED.items()) if row["kind"] == kind]


def payload(name: str) -> dict[str, Any]:
    return json.loads((FIXTURES / name).read_text("utf-8"))


@pytest.fixture(scope="module")
async def rows(shared_bot: BotProcess, shared_client: OneBotClient) -> dict[Key, Row]:
    """What is exported after all payloads: the messages of all their chats, but for what the
    bot answered, by chat and platform id."""
    client = shared_client
    for name, row in of_kind("withdrawal"):
        peer, at = int(row["chat"].partition(":")[2]), payload(name)["time"] - 10
        about = {"message_id": int(row["message_id"]), "at": at}
        if row["chat"].startswith("group"):
            await client.group_message("说错了", 1620003004, "老周", group_id=peer, **about)
        else:
            await client.private_message("说错了", peer, **about)
    counts: dict[str, int] = {}
    for _, row in [*of_kind("withdrawal"), *of_kind("message")]:
        counts[row["chat"]] = counts.get(row["chat"], 0) + 1
    for name in sorted(EXPECTED, key=lambda name: (name != KNOWN_FIRST, name)):
        await client.emit(payload(name))
        if name == KNOWN_FIRST:
            await wait_stored(shared_bot, EXPECTED[name]["chat"], 3)
    exported: dict[Key, Row] = {}
    for chat, count in counts.items():
        await wait_stored(shared_bot, chat, count)
        for row in await shared_bot.export_rows(chat, "message"):
            exported[chat, row["message_id"]] = row
    answers = {str(sent.message_id) for sent in client.sent}
    return {key: row for key, row in exported.items() if key[1] not in answers}


@pytest.mark.parametrize(("name", "expected"), of_kind("message"))
async def test_the_row_of_a_message(
    rows: dict[Key, Row], name: str, expected: dict[str, Any]
) -> None:
    row = rows[expected["chat"], expected["message_id"]]
    assert row["text"] == expected.get("text_with_names", expected["text"])
    for key in ("time", "user_id", "name"):
        assert row[key] == expected[key]
    assert row["withdrawn"] is False
    target = rows.get((expected["chat"], expected["reply_to_id"]))
    assert row["reply_to"] == (target["seq"] if target else None)
    assert isinstance(row["segments"], list)


@pytest.mark.parametrize(("name", "expected"), of_kind("withdrawal"))
async def test_a_withdrawal_masks_its_message(
    rows: dict[Key, Row], name: str, expected: dict[str, Any]
) -> None:
    row = rows[expected["chat"], expected["message_id"]]
    assert row["withdrawn"] is True
    assert "说错了" not in repr(row)


async def test_nothing_else_became_a_message(rows: dict[Key, Row], shared_bot: BotProcess) -> None:
    kept = [*of_kind("message"), *of_kind("withdrawal")]
    assert set(rows) == {(row["chat"], row["message_id"]) for _, row in kept}
    chats = {row["chat"] for _, row in kept}
    assert all(stored(shared_bot, chat) for chat in chats)


async def test_every_payload_has_an_expectation() -> None:
    names = {path.name for path in FIXTURES.glob("*.json") if "_api_" not in path.name}
    assert set(EXPECTED) == names - {"expected.json"}

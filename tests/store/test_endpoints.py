"""What a model's requests need is known after a restart."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from plugins.nonebot_plugin_nianlun.errors import ModelUnavailable, StoreError
from plugins.nonebot_plugin_nianlun.llm.breaker import FAILURES
from plugins.nonebot_plugin_nianlun.llm.client import ModelClient
from plugins.nonebot_plugin_nianlun.store import database
from plugins.nonebot_plugin_nianlun.store.endpoints import Endpoints
from tests.support.model_server import ModelServer, Reply

AT = datetime(2026, 11, 29, 1, 2, 3, 4, tzinfo=UTC)
ASK = [{"role": "user", "content": "说句话"}]


async def test_traits_are_kept_by_endpoint_and_model(database_file: Path) -> None:
    traits = Endpoints()
    long = "模型" * 500
    assert await traits.load("host/v1", "m") is None
    await traits.save("host/v1", "m", frozenset({"a"}), AT)
    await traits.save("host/v1", "m", frozenset({"b", "without:温度"}), AT)
    await traits.save("host/v1", long, frozenset(), AT)
    await traits.save("host/v1", long + "2", frozenset({"c"}), AT)
    assert await traits.load("host/v1", "m") == (frozenset({"b", "without:温度"}), AT)
    assert await traits.load("host/v1", long) == (frozenset(), AT)
    assert await traits.load("host/v1", long + "2") == (frozenset({"c"}), AT)
    assert await traits.load("other/v1", "m") is None


async def test_trouble_is_seen_by_other_processes_until_it_is_over(database_file: Path) -> None:
    with ModelServer() as server:
        client = ModelClient(
            api_key="k", base_url=server.base_url, model="m", max_tries=1, memory=Endpoints()
        )
        server.script(lambda _: (401, {}, "{}"))
        for _ in range(FAILURES):
            assert await Endpoints().trouble(client.endpoint) is None
            with pytest.raises(ModelUnavailable):
                await client.complete(ASK)
        await client.close()
        told = await Endpoints().trouble(client.endpoint)
        assert told is not None
        assert "OPENAI_API_KEY" in told[0]
        assert "秒后" not in told[0]
        assert await Endpoints().trouble("other") is None
        # The next process knows better as soon as it has an answer.
        client = ModelClient(api_key="k", base_url=server.base_url, model="m", memory=Endpoints())
        server.script(lambda _: "好")
        await client.complete(ASK)
        await client.close()
        assert await Endpoints().trouble(client.endpoint) is None


async def test_a_restart_asks_no_more_than_once(database_file: Path) -> None:
    def respond(body: dict[str, object]) -> Reply:
        return (400, {}, "unknown field temperature") if "temperature" in body else "好"

    with ModelServer() as server:
        server.script(respond)
        for expected in (2, 3):
            client = ModelClient(
                api_key="k",
                base_url=server.base_url,
                model="m",
                extra_body={"temperature": 1},
                memory=Endpoints(),
            )
            assert (await client.complete(ASK)).text == "好"
            await client.close()
            assert len(server.requests) == expected
            await database.close_store()
            await database.open_store(database_file)


async def test_a_database_without_the_table_is_store_trouble(database_file: Path) -> None:
    with database.connect(database_file, 5) as connection:
        connection.execute("DROP TABLE nianlun_property")
    connection.close()
    with pytest.raises(StoreError):
        await Endpoints().load("host", "m")
    with pytest.raises(StoreError):
        await Endpoints().save("host", "m", frozenset(), AT)

"""An endpoint that only fails is left alone, tried again, and never stormed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
import time

from hypothesis import given
from hypothesis import strategies as st
import pytest
import pytest_asyncio

from plugins.nonebot_plugin_nianlun.errors import BadAnswer, ModelUnavailable
from plugins.nonebot_plugin_nianlun.llm.breaker import (
    FAILURES,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    Breaker,
)
from plugins.nonebot_plugin_nianlun.llm.client import ModelClient
from plugins.nonebot_plugin_nianlun.llm.failures import Failure, retry_after
from tests.support.model_server import HTML, Delay, Disconnect, ModelServer, Reply, completion

ASK = [{"role": "user", "content": "说句话"}]
DOWN: Reply = (503, {}, "down")


class Watch:
    """A stopwatch that is moved by hand."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest_asyncio.fixture
async def client(server: ModelServer, watch: Watch) -> AsyncIterator[ModelClient]:
    client = ModelClient(
        api_key="k",
        base_url=server.base_url,
        model="m",
        timeout=5,
        max_tries=1,
        monotonic=watch,
    )
    yield client
    await client.close()


async def fail(client: ModelClient, times: int) -> None:
    for _ in range(times):
        with pytest.raises(ModelUnavailable):
            await client.complete(ASK)


@pytest.mark.parametrize(
    "reply",
    [
        DOWN,
        HTML,
        Disconnect(),
        (429, {}, "{}"),
        (401, {}, "{}"),
        {"error": {"message": "broken"}},
    ],
)
async def test_it_opens_half_opens_and_closes(
    client: ModelClient, server: ModelServer, watch: Watch, reply: Reply
) -> None:
    server.script(lambda _: reply)
    await fail(client, FAILURES - 1)
    assert client.trouble is None
    await fail(client, 1)
    assert client.trouble is not None
    assert "15 秒后再试" in client.trouble
    assert server.base_url.split("/")[2] in client.trouble

    started = time.monotonic()
    await fail(client, 50)
    assert time.monotonic() - started < 1
    assert len(server.requests) == FAILURES

    watch.time += FIRST_PAUSE
    assert client.trouble is not None
    await fail(client, 50)
    assert len(server.requests) == FAILURES + 1

    watch.time += FIRST_PAUSE  # the pause has doubled
    await fail(client, 1)
    assert len(server.requests) == FAILURES + 1
    watch.time += FIRST_PAUSE
    server.script(lambda _: "好呀")
    assert (await client.complete(ASK)).text == "好呀"
    assert client.trouble is None
    server.script(lambda _: reply)
    await fail(client, FAILURES - 1)
    assert client.trouble is None


async def test_why_is_said_while_it_is_open(client: ModelClient, server: ModelServer) -> None:
    server.script(lambda _: (401, {}, "{}"))
    await fail(client, FAILURES)
    with pytest.raises(ModelUnavailable, match="OPENAI_API_KEY") as caught:
        await client.complete(ASK)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (completion(""), BadAnswer),
        ((400, {}, "no"), ModelUnavailable),
        ((404, {}, "no such model"), ModelUnavailable),
    ],
)
async def test_what_one_request_is_refused_for_is_no_outage(
    client: ModelClient, server: ModelServer, reply: Reply, kind: type[Exception]
) -> None:
    server.script(lambda _: reply)
    for _ in range(3 * FAILURES):
        with pytest.raises(kind):
            await client.complete(ASK)
    assert client.trouble is None
    assert len(server.requests) == 3 * FAILURES


async def test_silence_is_an_outage(client: ModelClient, server: ModelServer) -> None:
    server.script(lambda _: Delay(30, "太晚了"))
    for _ in range(FAILURES):
        with pytest.raises(ModelUnavailable, match="没有回答"):
            await client.complete(ASK, seconds=0.1)
    assert client.trouble is not None
    assert "没有回答" in client.trouble


@pytest.mark.parametrize(("waited", "told"), [(29, False), (31, True)])
async def test_who_gives_up_after_long_has_seen_an_outage(
    client: ModelClient, server: ModelServer, watch: Watch, waited: float, told: bool
) -> None:
    server.script(lambda _: Delay(30, "太晚了"))
    for _ in range(FAILURES):
        call = asyncio.create_task(client.complete(ASK))
        await asyncio.sleep(0.05)
        watch.time += waited
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    assert (client.trouble is not None) is told


async def test_one_probe_at_a_time(client: ModelClient, server: ModelServer, watch: Watch) -> None:
    server.script(lambda _: DOWN)
    await fail(client, FAILURES)
    watch.time += FIRST_PAUSE
    server.script(lambda _: Delay(0.3, "好呀"))
    results = await asyncio.gather(
        *(client.complete(ASK) for _ in range(20)), return_exceptions=True
    )
    assert sum(not isinstance(one, Exception) for one in results) == 1
    assert len(server.requests) == FAILURES + 1
    assert client.trouble is None


async def test_a_cancelled_probe_leaves_the_next_one_its_turn(
    client: ModelClient, server: ModelServer, watch: Watch
) -> None:
    server.script(lambda _: DOWN)
    await fail(client, FAILURES)
    watch.time += FIRST_PAUSE
    server.script(lambda _: Delay(30, "太晚了"))
    probe = asyncio.create_task(client.complete(ASK))
    await asyncio.sleep(0.2)
    probe.cancel()
    await asyncio.gather(probe, return_exceptions=True)
    server.script(lambda _: "好呀")
    assert (await client.complete(ASK)).text == "好呀"


async def test_many_callers_make_no_storm(server: ModelServer, watch: Watch) -> None:
    client = ModelClient(
        api_key="k", base_url=server.base_url, model="m", timeout=20, monotonic=watch
    )
    server.script(lambda _: DOWN)
    callers = 20
    for _ in range(5):
        results = await asyncio.gather(
            *(client.complete(ASK) for _ in range(callers)), return_exceptions=True
        )
        assert all(isinstance(one, ModelUnavailable) for one in results)
    # Those that were under way when it opened, and not one try more.
    assert len(server.requests) <= callers
    for _ in range(10):
        watch.time += LONGEST_PAUSE
        await asyncio.gather(*(client.complete(ASK) for _ in range(5)), return_exceptions=True)
    assert len(server.requests) <= callers + 10
    await client.close()


async def test_a_short_wish_to_wait_is_heard(server: ModelServer) -> None:
    client = ModelClient(api_key="k", base_url=server.base_url, model="m", timeout=5)
    server.script([(503, {"Retry-After": "1"}, "busy"), "好呀"])
    started = time.monotonic()
    assert (await client.complete(ASK)).text == "好呀"
    assert 0.9 <= time.monotonic() - started < 4
    await client.close()


def test_the_pause_is_as_long_as_is_asked_for_within_bounds() -> None:
    watch = Watch()
    breaker = Breaker(watch)
    for wanted, pause in ((100, 100), (None, 200), (10**9, LONGEST_PAUSE), (None, LONGEST_PAUSE)):
        while not breaker.is_open:
            breaker.failed(breaker.admit(), "x", wanted)
        if watch.time > 1000:
            breaker.failed(breaker.admit(), "x", wanted)
        watch.time += pause - 1
        with pytest.raises(ModelUnavailable):
            breaker.admit()
        watch.time += 1


async def test_whoever_asks_at_once_sends_one_probe(
    client: ModelClient, server: ModelServer, watch: Watch
) -> None:
    server.script(lambda _: DOWN)
    client.try_now()
    await fail(client, FAILURES)
    client.try_now()
    await fail(client, 5)
    assert len(server.requests) == FAILURES + 1
    watch.time += FIRST_PAUSE - 1  # it is as long as it was
    await fail(client, 1)
    assert len(server.requests) == FAILURES + 1
    server.script(lambda _: Delay(0.2, "好呀"))
    client.try_now()
    probe = asyncio.create_task(client.complete(ASK))
    await asyncio.sleep(0.05)
    client.try_now()
    await fail(client, 1)
    assert (await probe).text == "好呀"
    assert len(server.requests) == FAILURES + 2


def test_a_try_that_was_asked_for_and_failed_keeps_nobody_waiting_for_longer() -> None:
    watch = Watch()
    breaker = Breaker(watch)
    while not breaker.is_open:
        breaker.failed(breaker.admit(), "x")
    for _ in range(5):
        watch.time += 2
        breaker.end_pause()
        assert not breaker.is_resting
        assert breaker.trouble == f"{breaker.verdict}，正要再试"
        breaker.failed(breaker.admit(), "x")
        assert breaker.is_resting
    assert f"{FAILURES + 5} 次，{FIRST_PAUSE - 10:.0f} 秒后再试" in str(breaker.trouble)
    watch.time += FIRST_PAUSE - 10
    breaker.failed(breaker.admit(), "x")  # its time had come: now the pause doubles
    assert f"{FIRST_PAUSE * 2:.0f} 秒后再试" in str(breaker.trouble)
    breaker.end_pause()
    breaker.failed(breaker.admit(), "x", 10**9)  # as long as the endpoint itself asks for
    assert f"{LONGEST_PAUSE:.0f} 秒后再试" in str(breaker.trouble)


STEPS = ["ok", "fail", "leave", "late", "ask"]


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.floats(0, 400))))
def test_it_never_shuts_for_ever(steps: list[tuple[str, float]]) -> None:
    watch = Watch()
    breaker = Breaker(watch)
    for step, passed in steps:
        watch.time += passed
        if step == "late":
            breaker.failed(False, "sent long ago")
            continue
        if step == "ask":
            breaker.end_pause()
            continue
        try:
            probe = breaker.admit()
        except ModelUnavailable:
            continue
        if step == "ok":
            breaker.succeeded()
            assert breaker.trouble is None
        elif step == "fail":
            breaker.failed(probe, "x")
        else:
            breaker.abandoned(probe)
    watch.time += LONGEST_PAUSE
    breaker.admit()
    breaker.succeeded()
    assert breaker.trouble is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "Wed, 99 Oct 99999 07:28:00 GMT"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60))
    seconds = retry_after({"retry-after": later})
    assert seconds is not None
    assert 55 <= seconds <= 60


@given(st.integers(1, 100))
def test_pauses_grow_and_are_bounded(tries: int) -> None:
    pause = Failure(503, "").pause(tries)
    assert 0.5 * 0.75 <= pause <= 8 * 1.25
    assert Failure(429, "", retry_after=3.0).pause(tries) == 3

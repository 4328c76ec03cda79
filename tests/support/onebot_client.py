"""A OneBot v11 implementation as the bot sees it: a reverse WebSocket client in NapCat's manner.

It emits events, answers API calls, and keeps what the bot asked for and what it sent.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
import json
import time
from types import TracebackType
from typing import Literal, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.onebot_history import History
from tests.support.onebot_platform import ApiFailure, Payload, Platform, Segments, Sent

Echo = Literal["none", "before", "after"]

SELF_ID = 3889001234
GROUP = 742100123


@dataclass(frozen=True)
class Call:
    """An API call of the bot."""

    action: str
    params: Payload


class OneBotClient:
    """One account's connection to the bot on `port`."""

    def __init__(
        self, port: int, self_id: int = SELF_ID, *, token: str | None = None, echo: Echo = "none"
    ) -> None:
        self.port = port
        self.self_id = self_id
        self.token = token
        self.echo: Echo = echo
        """Whether and when own messages are reported as `message_sent`."""
        self.delays: dict[str, float] = {}
        """Seconds that an action's answer takes."""
        self.failures: dict[str, ApiFailure] = {}
        """Actions that fail, by name."""
        self.answers: dict[str, object] = {}
        """Data with which an action is answered whatever it is asked."""
        self.calls: list[Call] = []
        self.sent: list[Sent] = []
        self._platform = Platform(self_id, "小忆")
        self._unread: list[Sent] = []
        self._news = asyncio.Condition()
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._answers: set[asyncio.Task[None]] = set()

    @property
    def history(self) -> History | None:
        """How chats' histories are handed out; None: there are no such actions."""
        return self._platform.history

    @history.setter
    def history(self, history: History | None) -> None:
        self._platform.history = history

    async def connect(self, within: float = 5) -> Self:
        """Connect and report the connection, as after every reconnect.

        The bot refuses an account whose last connection it still holds, so a refusal is
        followed by further tries.
        """
        headers = {"X-Self-ID": str(self.self_id), "X-Client-Role": "Universal"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        url, until = f"ws://127.0.0.1:{self.port}/onebot/v11/ws", time.monotonic() + within
        while True:
            try:
                self._socket = await connect(
                    url, additional_headers=headers, max_size=None, proxy=None
                )
                break
            except (InvalidStatus, OSError):
                if time.monotonic() > until:
                    raise
            await asyncio.sleep(0.05)
        self._reader = asyncio.create_task(self._read(self._socket))
        await self.emit(
            {"post_type": "meta_event", "meta_event_type": "lifecycle", "sub_type": "connect"}
        )
        return self

    async def settle(self) -> None:
        """Return once the bot's server has read everything emitted so far."""
        if self._socket is None:
            raise RuntimeError("not connected")
        await (await self._socket.ping())

    async def close(self) -> None:
        if self._socket is not None:
            await self._socket.close()
        if self._reader is not None:
            await self._reader
        for task in self._answers:
            task.cancel()
        await asyncio.gather(*self._answers, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # Events

    async def emit(self, event: Payload) -> Payload:
        """Send an event; `self_id` and `time` are filled in where it has none."""
        if self._socket is None:
            raise RuntimeError("not connected")
        event = {"time": int(time.time()), "self_id": self.self_id} | event
        if event["post_type"] in ("message", "message_sent"):
            self._platform.remember(event)
        await self._socket.send(json.dumps(event))
        return event

    async def group_message(
        self,
        message: str | Segments,
        user_id: int = 10010,
        name: str = "阿澈",
        *,
        card: str = "",
        role: str = "member",
        at: float | None = None,
        message_id: int | str | None = None,
        group_id: int = GROUP,
    ) -> Payload:
        """Somebody says something in a group; `at` is a Unix time. Returns the event."""
        sender = {"user_id": user_id, "nickname": name, "card": card, "role": role}
        event = self._platform.group_message(message, sender, group_id, at, message_id)
        return await self.emit({"post_type": "message"} | event)

    async def private_message(
        self,
        message: str | Segments,
        user_id: int = 10010,
        name: str = "阿澈",
        *,
        at: float | None = None,
        message_id: int | str | None = None,
        peer: int | None = None,
    ) -> Payload:
        """A friend writes in private, or with `peer` the account itself to a friend.

        Returns the event.
        """
        sender = {"user_id": user_id, "nickname": name, "card": ""}
        event = self._platform.private_message(message, sender, peer or user_id, at, message_id)
        return await self.emit({"post_type": "message"} | event)

    def missed(
        self,
        message: str,
        user_id: int = 10010,
        name: str = "阿澈",
        *,
        at: float,
        peer: int = GROUP,
        private: bool = False,
        message_id: int | None = None,
    ) -> Payload:
        """Something is said while the bot is away: only the history has it. Returns the event."""
        sender = {"user_id": user_id, "nickname": name, "card": ""}
        write = self._platform.private_message if private else self._platform.group_message
        event = write(message, sender, peer, at, message_id)
        event = {"post_type": "message", "self_id": self.self_id} | event
        self._platform.remember(event)
        return event

    async def recall(self, event: Payload, operator_id: int | None = None) -> None:
        """A message is taken back, by its author or by `operator_id`."""
        notice: Payload = {"post_type": "notice", "user_id": event["user_id"]}
        notice["message_id"] = event["message_id"]
        if "group_id" in event:
            notice |= {"notice_type": "group_recall", "group_id": event["group_id"]}
            notice["operator_id"] = operator_id or event["user_id"]
        else:
            notice["notice_type"] = "friend_recall"
        await self.emit(notice)

    # What the bot did

    async def wait_for_send(self, peer: int | None = None, *, within: float = 10) -> Sent:
        """The bot's next message, to the group or person `peer`, that no call has returned yet."""
        async with asyncio.timeout(within), self._news:
            await self._news.wait_for(lambda: self._next(peer) is not None)
        found = self._next(peer)
        assert found is not None
        self._unread.remove(found)
        return found

    async def stays_silent(self, seconds: float, peer: int | None = None) -> bool:
        """Whether the bot sends nothing that was not yet looked at for so long."""
        try:
            await self.wait_for_send(peer, within=seconds)
        except TimeoutError:
            return True
        return False

    # Inside

    def _next(self, peer: int | None) -> Sent | None:
        fits = (sent for sent in self._unread if peer in (None, sent.group_id, sent.user_id))
        return next(fits, None)

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for frame in socket:
                request = json.loads(frame)
                task = asyncio.create_task(self._answer(socket, request))
                self._answers.add(task)
                task.add_done_callback(self._answers.discard)
        except ConnectionClosed:
            return

    async def _answer(self, socket: ClientConnection, request: Payload) -> None:
        action, params = request["action"], request.get("params") or {}
        self.calls.append(Call(action, params))
        await asyncio.sleep(self.delays.get(action, 0))
        own: Payload | None = None
        try:
            if action in self.failures:
                raise self.failures[action]
            if action in self.answers:
                data, sent = self.answers[action], None
            else:
                data, sent, own = self._platform.perform(action, params)
            answer = {"status": "ok", "retcode": 0, "data": data, "message": "", "wording": ""}
        except ApiFailure as failure:
            sent = None
            answer = {"status": "failed", "retcode": failure.retcode, "data": None}
            answer |= {"message": failure.message, "wording": failure.message}
        answer |= {"echo": request.get("echo"), "stream": "normal-action"}
        try:
            if own is not None and self.echo == "before":
                await self.emit(own)
            await socket.send(json.dumps(answer))
            if own is not None and self.echo == "after":
                await self.emit(own)
        except ConnectionClosed:
            return
        if sent is not None:
            async with self._news:
                self.sent.append(sent)
                self._unread.append(sent)
                self._news.notify_all()

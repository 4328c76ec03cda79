"""One message looked into: its forwards opened, its pictures fetched and described."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from hashlib import md5
from typing import TypeAlias

from nonebot import logger
from nonebot.adapters import Bot

from .capture.downloading import NotFetched, download
from .capture.forwards import NotOpened, opened, unopened
from .capture.other_side import forward_lines, peer_address
from .capture.pictures import Picture, pictures, still_type, with_captions
from .capture.readable import line_of_forward, readable
from .clock import Clock
from .errors import BadAnswer, ModelError, ModelRefused, ModelUnavailable
from .llm.captions import Captioner
from .memory.calendar import Calendar
from .store import captions, speakers, usage
from .store.captions import Showing
from .types import ChatKey, Incoming, Segment, Usage

Affordable: TypeAlias = Callable[[int, ChatKey], Awaitable[bool]]

PER_DAY = 200
"""Pictures that a model looks at in one chat and logical day, whether it describes them or not."""
_PER_MESSAGE = 9
_PURPOSE = "caption"


class Later(Exception):
    """Something could not be found out now. Its text is one line for the log."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message was said, and who of us heard it."""

    chat_id: int
    chat: ChatKey
    bot: Bot


@dataclass(slots=True)
class _Found:
    """What was found out about one message."""

    segments: list[Segment]
    captions: dict[int, str] = field(default_factory=dict)
    """By segment."""
    seen: dict[str, str] = field(default_factory=dict)
    """By content hash; empty for what a model did not describe."""
    missing: list[str] = field(default_factory=list)
    """Why something is still to be found out."""


class LookingInto:
    """Finds out what messages show and hold, and puts it into their text."""

    def __init__(
        self,
        captioner: Captioner | None,
        clock: Clock,
        calendar: Calendar,
        character: str,
        affordable: Affordable,
        changed: Callable[[int, int], None],
    ) -> None:
        """Without a `captioner` only forwards are opened. `character` is how a mention of the
        bot itself reads, `affordable` whether a chat may still spend tokens today. `changed` is
        told of every message that got another text, by chat row id and seq."""
        self._captioner = captioner
        self._clock = clock
        self._calendar = calendar
        self._character = character
        self._affordable = affordable
        self._changed = changed
        self._failed: str | None = None
        """Why the last picture was not looked at."""

    @property
    def trouble(self) -> str | None:
        """Why pictures are not looked at; None when they are, or need not be."""
        told = (self._captioner.trouble if self._captioner else None) or self._failed
        return f"看图的模型用不了，图片只记「[图片]」：{told}" if told else None

    async def into(
        self, place: Place, seq: int, still_ours: Callable[[], Awaitable[bool]], *, last: bool
    ) -> None:
        """Look into a message and keep what was found. `last`: there will be no other try.

        Raises Later when something is missing that another try may bring, and StoreError.
        """
        before = await captions.standing(place.chat_id, seq)
        if before is None:
            return
        found = _Found(before.segments)
        if unopened(before.segments):
            await self._open(place, found)
        if self._captioner is not None:
            for picture in pictures(found.segments)[:_PER_MESSAGE]:
                if not await still_ours():
                    raise Later("另一个进程在看")
                await self._look_at(self._captioner, place, seq, picture, found, last)
        await self._keep(place, before, found)
        if found.missing:
            raise Later(found.missing[0])

    async def _open(self, place: Place, found: _Found) -> None:
        try:
            found.segments = await opened(found.segments, forward_lines(place.bot), line_of_forward)
        except NotOpened as error:
            found.missing.append(str(error))

    async def _look_at(
        self,
        captioner: Captioner,
        place: Place,
        seq: int,
        picture: Picture,
        found: _Found,
        last: bool,
    ) -> None:
        if picture.md5 and await self._knew(place, picture.md5, picture, found):
            return
        if captioner.is_resting:
            found.missing.append(captioner.trouble or "")
            return
        try:
            content = await download(picture.url, peer_address(place.bot))
        except NotFetched as error:
            logger.debug(f"{place.chat} 的一张图没有下载：{error}")
            if error.may_pass:
                found.missing.append(str(error))
            return
        key = md5(content, usedforsecurity=False).hexdigest()
        media_type = still_type(content)
        if media_type is None or await self._knew(place, key, picture, found):
            return
        # It may have been taken back while it was fetched.
        if await captions.standing(place.chat_id, seq) is None or not await self._may_ask(place):
            return
        try:
            found.seen[key] = await self._described(captioner, place, media_type, content)
            found.captions[picture.place] = found.seen[key]
        except (ModelRefused, BadAnswer) as error:
            found.missing.append(str(error))
            if last:
                found.seen[key] = ""
        except ModelUnavailable as error:
            found.missing.append(str(error))

    async def _knew(self, place: Place, key: str, picture: Picture, found: _Found) -> bool:
        """Whether this picture was seen before in this chat; then it shows what it did.

        Only in this chat: a member's client may give a picture any name, and what others sent
        elsewhere is not to be learnt by naming it.
        """
        if key not in found.seen:
            found.seen |= await captions.known(place.chat_id, [key])
        if key not in found.seen:
            return False
        if text := found.seen[key]:
            found.captions[picture.place] = text
        return True

    async def _may_ask(self, place: Place) -> bool:
        asked, _ = await usage.calls(place.chat_id, self._today(), [_PURPOSE])
        return asked < PER_DAY and await self._affordable(place.chat_id, place.chat)

    async def _described(
        self, captioner: Captioner, place: Place, media_type: str, content: bytes
    ) -> str:
        try:
            made = await captioner.caption(media_type, content)
        except ModelError as error:
            if isinstance(error, ModelUnavailable):
                self._unavailable(error)
            else:
                await self._count(captioner, place, error.usage or Usage(), ok=False)
            raise
        self._failed = None
        await self._count(captioner, place, made.usage, ok=True)
        return made.text

    def _unavailable(self, error: ModelUnavailable) -> None:
        told_before = self._failed is not None
        self._failed = str(error)
        if not told_before:
            logger.warning(self.trouble)

    async def _count(self, captioner: Captioner, place: Place, cost: Usage, *, ok: bool) -> None:
        await usage.count(place.chat_id, self._today(), _PURPOSE, captioner.model, cost, ok)

    async def _keep(self, place: Place, before: Showing, found: _Found) -> None:
        segments = with_captions(found.segments, found.captions)
        if segments == before.segments and not found.seen:
            return
        text = await self._text(place, before, segments)
        if await captions.show(place.chat_id, before, segments, text, found.seen):
            self._changed(place.chat_id, before.seq)

    async def _text(self, place: Place, before: Showing, segments: Sequence[Segment]) -> str:
        said = Incoming(
            place.chat, before.time, before.user_id, before.name, list(segments), "event"
        )
        names = await speakers.names_for_mentions(place.chat_id, [said], self._character)
        return readable(segments, names)

    async def close(self) -> None:
        if self._captioner is not None:
            await self._captioner.close()

    def _today(self) -> str:
        return self._calendar.day_of(self._clock.now()).isoformat()

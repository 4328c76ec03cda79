"""What a command is: the table of these is all that the rest of the folder is made from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from nonebot.adapters.onebot.v11 import Bot, MessageEvent
from nonebot_plugin_alconna import Args, Option, Segment

from ..errors import NianlunError
from ..types import ChatKey
from .permissions import Right, Role, may


class WrongUsage(NianlunError):
    """The words fit the command but make no sense; answered with this line and the usage."""


class NotUnderstood(NianlunError):
    """This word is neither a command nor a date; answered with what comes near it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody asked for."""

    chat: ChatKey
    """About which chat: where it was said, or what a superuser named with `-g` or `-u`."""
    here: ChatKey
    """Where it was said."""
    user_id: str
    """QQ number as text."""
    is_superuser: bool
    role: Role
    at: datetime
    """Of the event."""
    arguments: Mapping[str, Any]
    """By the names in `Command.arguments`; an option that was given is True under its name
    without dashes, its own arguments stand beside it. What was not given is missing."""
    quoted: str | None
    """The platform's id of the message that the command quotes."""
    bot: Bot
    event: MessageEvent
    head: str
    """How a command begins: `/记忆`."""

    @property
    def governs(self) -> bool:
        """Whether they may also use what wants the right `govern` here."""
        return may(
            "govern",
            is_superuser=self.is_superuser,
            role=self.role,
            kind=self.chat.kind,
            members_read=False,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back to whoever asked."""

    text: str = ""
    title: str = ""
    """Stands above the text; may be empty."""
    picture: bytes | None = None
    """A PNG; goes out before the text."""
    file: Path | None = None
    """Goes to the asker as a file of that name, and is deleted then."""
    privately: bool = False
    """Goes to the asker in private, not to the group."""
    quotes: str | None = None
    """The platform's id of a message in this chat under which the text goes, where that works."""


Serve: TypeAlias = Callable[[Asked], Awaitable[Answer | str]]


@dataclass(frozen=True, slots=True)
class Command:
    """One verb under `/记忆`."""

    verb: str
    right: Right
    note: str
    """One line for the help text."""
    serve: Serve
    """Raises NianlunError, one line for a person, or WrongUsage."""
    arguments: tuple[Args, ...] = ()
    """Words of the command, in their order; see also `rest_of_line`."""
    options: tuple[Option, ...] = ()
    """Not together with a rest of line, which would swallow them."""
    example: str = ""
    """Arguments of a right usage: `爬山 小爱 上个月`."""
    usage: str = ""
    """The shape of the arguments: `词 [说话人] [时间]`."""
    names_person: bool = field(default=False, kw_only=True)
    """Its last word may be somebody: an @ of the bot there is no mere address."""
    group: str = field(default="", kw_only=True)
    """Heading of the help text under which it stands; that of the verb before, when empty."""


@dataclass
class Rest(Segment):
    """The rest of a command as it was typed; never split, so that nothing in it is lost."""

    text: str


def rest_of_line(name: str, *, optional: bool = False) -> Args:
    """The last argument of a command: all that follows, as typed, with its line breaks, inner
    spaces and quotation marks. It arrives in `Asked.arguments` as a non-empty str. The
    arguments before it are one word each and none of them may be left out."""
    return Args[f"{name};?" if optional else name, Rest]

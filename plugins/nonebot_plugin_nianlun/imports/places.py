"""Where the chats of a file belong: which chat of which account, and who in them is the bot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import re
from typing import cast

from ..capture.cleaning import one_line
from ..errors import ChatError
from ..store import named_stores
from ..store.keys import short_id
from ..store.matching import NAMELESS
from ..store.speakers import name_key
from ..types import ME, ChatKey, ChatKind
from .found import FoundChat
from .survey import Survey, SurveyedChat

_TARGET = re.compile(
    r"(?:(?P<self_id>[^/\s:=]{1,64})/)?(?P<kind>group|private|store):(?P<peer>\S.{0,127})"
)
"""As long at most as the columns are."""
_NUMBER = re.compile(r"\d+", re.ASCII)
_SHOWN = 20
_CACHED = 4096


@dataclass(frozen=True, slots=True)
class Target:
    """What `--chat` says: a chat, and which of the file's chats belongs there."""

    kind: ChatKind
    peer_id: str
    self_id: str | None = None
    label: str | None = None
    """None: the only chat of the file."""


@dataclass(frozen=True, slots=True)
class Known:
    """A chat on record, with the name that it has."""

    key: ChatKey
    name: str | None


def target(text: str) -> Target:
    """Read `group:123`, `10001/group:123` or `名字=group:123`. Raises ValueError."""
    label, chat = None, text.strip()
    match = _TARGET.fullmatch(chat)
    if match is None:
        label, _, chat = chat.rpartition("=")
        match = _TARGET.fullmatch(chat.strip())
        if match is None or not label.strip():
            raise ValueError(text)
    peer = match["peer"]
    if match["kind"] != "store" and not (_NUMBER.fullmatch(peer) or peer.startswith(NAMELESS)):
        raise ValueError(text)
    return Target(cast("ChatKind", match["kind"]), match["peer"], match["self_id"], label)


def choose(
    survey: Survey, targets: Sequence[Target], self_id: str | None, known: Sequence[Known]
) -> list[ChatKey]:
    """The chat for each one of the file, in order. Raises ChatError with what to pass."""
    named = _named(survey, targets)
    return [
        _place(chat, named.get(number), self_id, known) for number, chat in enumerate(survey.chats)
    ]


def _named(survey: Survey, targets: Sequence[Target]) -> dict[int, Target]:
    labels = [name_key(chat.label) for chat in survey.chats]
    found: dict[int, Target] = {}
    for one in targets:
        if one.label is None and len(labels) == len(targets) == 1:
            return {0: one}
        key = None if one.label is None else name_key(one.label)
        if key not in labels:
            raise ChatError(_several(survey, one))
        if found.setdefault(labels.index(key), one) != one:
            raise ChatError(f"--chat 把 {one.label} 导入到两个地方，只能选一个")
    return found


def _several(survey: Survey, given: Target) -> str:
    names = "、".join(chat.label for chat in survey.chats[:_SHOWN])
    more = f" 等 {len(survey.chats)} 个" if len(survey.chats) > _SHOWN else ""
    chat = f"{given.kind}:{given.peer_id}"
    if given.label is not None:
        return f"文件里没有叫 {given.label.strip()} 的会话，有的是：{names}{more}"
    if len(survey.chats) == 1:
        return "文件里只有一个会话，--chat 只能给一次"
    return f"文件里有几个会话（{names}{more}），请写成 --chat 名字={chat}"


def _place(
    chat: SurveyedChat, given: Target | None, self_id: str | None, known: Sequence[Known]
) -> ChatKey:
    found = chat.found
    if given is not None:
        if given.self_id is not None and self_id not in (None, given.self_id):
            raise ChatError(
                f"--chat 写的账号是 {given.self_id}，--self-id 写的是 {self_id}，只能选一个"
            )
        return _with_account(
            given.kind, given.peer_id, given.self_id or self_id, found.self_id, known
        )
    if found.peer_id is not None:
        peer_id = short_id(found.peer_id)
        return _with_account(found.kind, peer_id, self_id, found.self_id, known)
    same = [
        one.key
        for one in known
        if one.key.kind == found.kind
        and one.name is not None
        and name_key(one.name) == name_key(chat.label)
        and self_id in (None, one.key.self_id)
    ]
    # Whoever has a number is meant before the same one as an earlier file knew it, by name alone.
    same = [key for key in same if not is_nameless(key)] or same
    if same and not chat.shares_name:
        if len(same) > 1:
            places = "、".join(f"--chat {chat.label}={key.full}" for key in same[:_SHOWN])
            raise ChatError(f"有几个会话都叫 {chat.label}，请指出是哪一个：{places}")
        return same[0]
    if chat.name is None:
        # Under one name for all that have none, chats of different people would become one.
        raise ChatError(f"文件里没有写这是哪个会话，请用 --chat {found.kind}:号码 指出")
    return _with_account(found.kind, _peer_of_name(chat.label), self_id, found.self_id, known)


def _peer_of_name(label: str) -> str:
    """A slash would read as the end of an account."""
    return short_id(f"{NAMELESS}{one_line(name_key(label)).replace('/', '／')}")


def is_nameless(chat: ChatKey) -> bool:
    """Whether the chat is known by a name alone, since no file gave its number."""
    return chat.peer_id.startswith(NAMELESS)


def _with_account(
    kind: ChatKind,
    peer_id: str,
    given: str | None,
    of_file: str | None,
    known: Sequence[Known],
) -> ChatKey:
    if kind == "store":
        return named_stores.chat_of(peer_id)  # no bot account's, whoever wrote the file
    if given is not None:
        return ChatKey(given, kind, peer_id)
    accounts = [
        one.key.self_id for one in known if (one.key.kind, one.key.peer_id) == (kind, peer_id)
    ]
    if len(accounts) > 1 and of_file not in accounts:
        names = "、".join(f"{account}/{kind}:{peer_id}" for account in accounts)
        raise ChatError(f"{kind}:{peer_id} 在几个机器人账号里都有，请用 --chat 写全：{names}")
    if len(accounts) == 1:
        return ChatKey(accounts[0], kind, peer_id)
    if of_file is not None:
        return ChatKey(short_id(of_file, 64), kind, peer_id)
    everyone = {one.key.self_id for one in known if one.key.kind != "store"}
    if len(everyone) == 1:
        return ChatKey(everyone.pop(), kind, peer_id)
    raise ChatError("不知道这份记录属于哪个机器人账号，请用 --self-id 写上机器人的 QQ 号")


@dataclass(frozen=True, slots=True)
class Me:
    """Whose lines are the bot's own, beside those of its account."""

    user_ids: frozenset[str]
    names: frozenset[str]
    """Of people without a number; as they compare."""


def me(survey: Survey, given: Sequence[str]) -> Me:
    """Who `--me` means. Raises ChatError when it is nobody, or several people of one name."""
    user_ids: set[str] = set()
    names: set[str] = set()
    for text in given:
        if text.strip() in survey.numbers:
            user_ids.add(text.strip())
            continue
        people = survey.whose(text)
        numbers = sorted(user_id for user_id in people if user_id is not None)
        if not people:
            raise ChatError(_nobody(survey, text))
        if len(numbers) > 1:
            raise ChatError(f"叫 {text} 的不止一人，--me 请写号码：{'、'.join(numbers[:_SHOWN])}")
        user_ids.update(numbers)
        if None in people:
            names.add(name_key(text))
    return Me(frozenset(user_ids), frozenset(names))


def _nobody(survey: Survey, text: str) -> str:
    names = list(survey.names)
    more = f" 等 {len(names)} 人" if len(names) > _SHOWN else ""
    return f"文件里没有 {text} 这个人，有的是：{'、'.join(names[:_SHOWN])}{more}"


class Speakers:
    """Who says each line of one chat of a file."""

    def __init__(self, chat: ChatKey, found: FoundChat, me: Me) -> None:
        self._chat = chat
        self._me = me
        # A store has no account of its own: there the bot is who it was in the file's chat.
        self._account = found.self_id if chat.kind == "store" else chat.self_id
        self._peer = None
        if chat.kind == "private" and not is_nameless(chat) and found.name:
            self._peer = name_key(found.name)
        self._ids: dict[tuple[str | None, str], str] = {}

    def user_id(self, user_id: str | None, name: str) -> str:
        """The speaker's id here; `me` for the bot."""
        known = self._ids.get((user_id, name))
        if known is None:
            known = self._find(user_id, name)
            if len(self._ids) >= _CACHED:
                self._ids.clear()
            self._ids[user_id, name] = known
        return known

    def told_as(self, user_id: str | None, name: str) -> str:
        """The speaker's id as it is without knowing who is the bot or whose chat it is."""
        return short_id(f"{NAMELESS}{name_key(name)}" if user_id is None else user_id)

    def _find(self, user_id: str | None, name: str) -> str:
        if user_id is not None:
            mine = user_id in (ME, self._account) or user_id in self._me.user_ids
            return ME if mine else short_id(user_id)
        key = name_key(name)
        if key in self._me.names:
            return ME
        if key == self._peer:
            return self._chat.peer_id
        return self.told_as(None, name)

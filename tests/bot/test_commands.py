"""The commands, from the event to what is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import AsyncMock
from zoneinfo import ZoneInfo

import nonebot
from nonebot import logger
from nonebot.adapters.onebot.v11 import (
    ActionFailed,
    Adapter,
    Bot,
    GroupMessageEvent,
    Message,
    MessageEvent,
    MessageSegment,
    PrivateMessageEvent,
)
from nonebot.adapters.onebot.v11.bot import _check_at_me, _check_nickname, _check_reply
from nonebot.matcher import Matcher
from nonebot_plugin_alconna import Args
from nonebug import App
import pytest

from plugins.nonebot_plugin_nianlun.chat.delivery import LONG_LINES
from plugins.nonebot_plugin_nianlun.commands.about_me import AboutMe
from plugins.nonebot_plugin_nianlun.commands.answering import Answering
from plugins.nonebot_plugin_nianlun.commands.command import Answer, Asked, Command, rest_of_line
from plugins.nonebot_plugin_nianlun.commands.desk import Desk
from plugins.nonebot_plugin_nianlun.commands.gate import has_command
from plugins.nonebot_plugin_nianlun.commands.looking import Looking
from plugins.nonebot_plugin_nianlun.commands.matcher import answer_with
from plugins.nonebot_plugin_nianlun.commands.permissions import Right
from plugins.nonebot_plugin_nianlun.errors import ChatError, StoreLocked
from plugins.nonebot_plugin_nianlun.lifecycle import Nianlun
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.store import chats
from plugins.nonebot_plugin_nianlun.types import (
    Activity,
    ChatKey,
    ChatKind,
    ChatStatus,
    Forgotten,
    Memory,
    MemoryKind,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from nonebug.mixin.process import MatcherContext

SELF, MEMBER, BOSS = 10001, 20002, 30003
NOW = datetime(2026, 11, 29, 17, 30, tzinfo=UTC)  # 01:30 on the 30th, still the 29th's day

REFUSED = "只有群主、管理员和机器人的主人可以用这条指令。"
UNREADABLE = "只有群主、管理员和机器人的主人可以看这个群的记忆。"
SERVED = {"状态", "今天", "昨天", "前天", "日期", "别记我", "可以记我", "忘记我"}
"""The product's own verbs that this desk can serve."""
ONLY_SUPERUSERS = "只有机器人的主人可以用这条指令。"
OPEN: dict[str, set[Right]] = {
    "governor in private": {"all", "own", "read", "govern"},
    "in a group": {"all", "own", "read"},
    "in a closed group": {"all", "own"},
}
STATUS = """年轮的状态
记录进行中，由离线写手来写
消息：9 条，待写 1 条，跳过 2 条，缺口 0 处
记忆：活动 3 条，日 4 篇，月 5 篇，年 6 篇
最近一条活动：还没有
最近一次汇总：还没有，下一次：还没有
今天用量（不算回复）：0 token
最近的错误：没有"""
AS_DATES = "请写成 2026-01-05、2026-01 或 2026。\n/记忆 2026-01-05"
TODAY = "2026-11-29（周日）\n&3 10:32 我和小鹿聊了草莓蛋糕。（#12）"
YESTERDAY = "2026-11-28（周六）我还没有记下什么。"
A_DAY = "2026-01-05（周一）\n我第一次来到这里。\n第 1 版 · 离线写手 · 2026-11-29 10:32"
TIDY = "整理过了。"
ANSWERS = {
    "帮助": "",
    "状态": STATUS,
    "今天": TODAY,
    "昨天": YESTERDAY,
    "2026-1-5": A_DAY,
    "整理": TIDY,
    "关机": "关了。",
}
READING = {"帮助", "今天", "昨天", "2026-1-5"}
PNG = b"\x89PNG a picture"

MORNING = datetime(2026, 11, 29, 2, 32, tzinfo=UTC)
ACTIVITY = Activity(
    number=3,
    date="2026-11-29",
    text="我和小鹿聊了草莓蛋糕。（关键消息：[12]）",
    key_messages=(12,),
    origin="window",
    time=MORNING,
    writer="offline",
    written_at=MORNING,
)
MEMORY = Memory(
    kind="day",
    period="2026-01-05",
    text="我第一次来到这里。",
    key_messages=(),
    sources=("1",),
    version=1,
    writer="offline",
    written_at=MORNING,
)


class StoppedClock:
    def now(self) -> datetime:
        return NOW


class Quiet:
    """What never is in trouble."""

    trouble = None

    def silence(self, chat: ChatKey) -> None:
        return None


@dataclass
class FakeProduct:
    """A product with chats of one memory, that can be told to fail."""

    calendar: Calendar = field(
        default_factory=lambda: Calendar(ZoneInfo("Asia/Shanghai"), time(4, 0))
    )
    clock: StoppedClock = field(default_factory=StoppedClock)
    members_read: bool = True
    superusers: frozenset[str] = frozenset({str(BOSS)})
    notes: list[Activity] = field(default_factory=lambda: [ACTIVITY])
    memories: list[Memory] = field(default_factory=lambda: [MEMORY])
    failure: Exception | None = None
    closed: frozenset[str] = frozenset()
    asked: list[ChatKey] = field(default_factory=list)
    client: None = None
    replier: Quiet = field(default_factory=lambda: Quiet())
    recaller: Quiet = field(default_factory=lambda: Quiet())
    known: frozenset[ChatKey] = frozenset()
    """Chats that can be named."""
    said: list[tuple[str, Asked]] = field(default_factory=list)
    """What a command that takes free text was given."""
    file: Path | None = None
    changes: bool = True
    """Whether opting out or in changes something."""
    done: list[tuple[str, str, datetime]] = field(default_factory=list)

    def hears(self, chat: ChatKey) -> bool:
        return chat.peer_id not in self.closed

    async def status(self, chat: ChatKey) -> ChatStatus:
        self._ask(chat)
        return ChatStatus(
            messages=9,
            pending=1,
            skipped=2,
            activities=3,
            days=4,
            months=5,
            years=6,
            last_note_at=None,
            last_rollup_at=None,
            last_error=None,
            last_error_at=None,
            next_rollup_at=None,
            gaps=0,
            tokens_today=0,
            writer="offline",
            paused=False,
        )

    async def memory(self, chat: ChatKey, kind: MemoryKind, period: str) -> Memory | None:
        self._ask(chat)
        found = [row for row in self.memories if (row.kind, row.period) == (kind, period)]
        return found[0] if found else None

    async def activities(self, chat: ChatKey, date: str) -> list[Activity]:
        self._ask(chat)
        return [note for note in self.notes if note.date == date]

    async def tidy(self, asked: Asked) -> str:
        self._ask(asked.chat)
        return TIDY

    async def opt_out(self, chat: ChatKey, user_id: str, at: datetime) -> bool:
        self._ask(chat)
        self.done.append(("opt_out", user_id, at))
        return self.changes

    async def opt_in(self, chat: ChatKey, user_id: str, at: datetime) -> bool:
        self._ask(chat)
        self.done.append(("opt_in", user_id, at))
        return self.changes

    async def forget(self, chat: ChatKey, user_id: str, at: datetime) -> Forgotten:
        self._ask(chat)
        self.done.append(("forget", user_id, at))
        return Forgotten(messages=7, notes=3, facts=2, names=1, opted_out=not self.changes)

    def _ask(self, chat: ChatKey) -> None:
        self.asked.append(chat)
        if self.failure:
            raise self.failure


class FakeDesk(Desk):
    """Asks a fake product instead of a database."""

    def __init__(self, product: FakeProduct) -> None:
        super().__init__(cast(Nianlun, product))
        self._product = product

    async def members_read(self, chat: ChatKey) -> bool:
        return self._product.members_read

    async def meant(self, kind: ChatKind, typed: str, here: ChatKey) -> ChatKey:
        chat = ChatKey(here.self_id, kind, typed)
        if chat not in self._product.known:
            raise ChatError(f"没有记录过 {chat} 这个会话")
        return chat


def samples(product: FakeProduct) -> list[Command]:
    """Commands of each right and with each kind of answer."""

    async def say(asked: Asked) -> str:
        product.said.append((asked.arguments["话"], asked))
        return "好"

    async def draw(asked: Asked) -> Answer:
        return Answer("画好了", picture=PNG)

    async def carry(asked: Asked) -> Answer:
        return Answer(file=product.file, privately=True)

    async def switch_off(asked: Asked) -> str:
        return "关了。"

    return [
        Command("整理", "govern", "写完", product.tidy, group="别的"),
        Command("说", "govern", "照着说", say, (rest_of_line("话"),), usage="话"),
        Command("画", "read", "一张图", draw),
        Command("带走", "govern", "一个文件", carry),
        Command("关机", "owner", "关机", switch_off),
    ]


@dataclass
class Registered:
    matcher: type[Matcher]
    product: FakeProduct
    answering: Answering


@pytest.fixture(scope="module")
def registered() -> Iterator[Registered]:
    product = FakeProduct()
    ours = cast(Nianlun, product)
    commands = [*Looking(ours).commands(), *AboutMe(ours).commands()]
    commands = [command for command in commands if command.verb in SERVED]
    answering = Answering(FakeDesk(product), [*commands, *samples(product)], {"/"})
    matcher = answer_with(answering, "小年")
    yield Registered(matcher, product, answering)
    matcher.destroy()


@pytest.fixture
def desk(registered: Registered) -> FakeProduct:
    """The registered product, as new."""
    product = registered.product
    product.__dict__.update(FakeProduct().__dict__)
    return product


@pytest.fixture
def matcher(registered: Registered, monkeypatch: pytest.MonkeyPatch) -> type[Matcher]:
    # Behind the fake product there is no store.
    monkeypatch.setattr(chats, "find", AsyncMock(return_value=None))
    return registered.matcher


@pytest.fixture
def answering(registered: Registered) -> Answering:
    return registered.answering


def event_of(
    message: str | Message,
    *,
    kind: str = "group",
    role: str = "member",
    user_id: int = MEMBER,
    message_id: int = 7,
) -> MessageEvent:
    payload = {
        "time": int(NOW.timestamp()),
        "self_id": SELF,
        "post_type": "message",
        "message_type": kind,
        "sub_type": "normal" if kind == "group" else "friend",
        "message_id": message_id,
        "user_id": user_id,
        "message": Message(message) if isinstance(message, Message) else [text_data(message)],
        "raw_message": str(message),
        "font": 14,
        "sender": {"user_id": user_id, "nickname": "小鹿", "role": role},
    }
    if kind == "group":
        return GroupMessageEvent.model_validate({**payload, "group_id": 123})
    return PrivateMessageEvent.model_validate(payload)


def text_data(text: str) -> dict[str, Any]:
    return {"type": "text", "data": {"text": text}}


@asynccontextmanager
async def chatting(app: App, matcher: type[Matcher]) -> AsyncIterator[tuple[MatcherContext, Bot]]:
    async with app.test_matcher(matcher) as ctx:
        adapter = nonebot.get_adapter(Adapter)
        # Connecting would run the plugin's own hooks, which want a started driver.
        bot = ctx.create_bot(base=Bot, adapter=adapter, self_id=str(SELF), auto_connect=False)
        yield ctx, bot


async def expect(app: App, matcher: type[Matcher], event: MessageEvent, answer: str) -> None:
    """The answer goes out, folded into a bundle where it has many lines."""
    async with chatting(app, matcher) as (ctx, bot):
        ctx.receive_event(bot, event)
        if answer.count("\n") < LONG_LINES:
            ctx.should_call_send(event, MessageSegment.text(answer), bot=bot)
            return
        bundle = [MessageSegment.node_custom(SELF, "小年", Message(MessageSegment.text(answer)))]
        group = isinstance(event, GroupMessageEvent)
        peer = {"group_id": event.group_id} if group else {"user_id": event.user_id}
        api = f"send_{'group' if group else 'private'}_forward_msg"
        ctx.should_call_api(api, {**peer, "messages": bundle}, {"message_id": 1})


async def expect_silence(app: App, matcher: type[Matcher], event: MessageEvent) -> None:
    async with chatting(app, matcher) as (ctx, bot):
        ctx.receive_event(bot, event)
        ctx.should_not_pass_permission(matcher)


@pytest.mark.parametrize("verb", ANSWERS)
@pytest.mark.parametrize("members_read", [True, False])
@pytest.mark.parametrize(
    ("kind", "role", "user_id", "rank"),
    [
        ("group", "owner", MEMBER, "governor"),
        ("group", "admin", MEMBER, "governor"),
        ("group", "member", BOSS, "governor"),
        ("group", "member", MEMBER, "member"),
        ("private", "", MEMBER, "governor"),
        ("private", "", BOSS, "governor"),
    ],
)
async def test_each_verb_for_each_rank(
    app: App,
    matcher: type[Matcher],
    desk: FakeProduct,
    verb: str,
    members_read: bool,
    kind: str,
    role: str,
    user_id: int,
    rank: str,
    answering: Answering,
) -> None:
    desk.members_read = members_read
    answer = ANSWERS[verb]
    if verb == "关机" and user_id != BOSS:
        answer = ONLY_SUPERUSERS
    elif verb == "帮助" and rank == "member" and not members_read:
        answer = f"年轮：我的记忆\n{UNREADABLE}\n{answering.tree.own_help()}"
        assert "忘记我" in answer
        assert "状态" not in answer
    elif rank == "member" and not (members_read and verb in READING):
        answer = UNREADABLE if verb in READING else REFUSED
    elif verb == "帮助":
        where = "in a group" if members_read else "in a closed group"
        open_to = OPEN["governor in private" if kind == "private" else where]
        answer = f"年轮：我的记忆\n{answering.tree.help_text(open_to)}"
    event = event_of(f"/记忆 {verb}", kind=kind, role=role, user_id=user_id)
    await expect(app, matcher, event, answer)
    if answer in (REFUSED, UNREADABLE, ONLY_SUPERUSERS):
        assert desk.asked == []
    peer = "123" if kind == "group" else str(user_id)
    assert {str(chat) for chat in desk.asked} <= {f"{kind}:{peer}"}


async def test_the_word_alone_is_a_call_for_help(
    app: App, matcher: type[Matcher], desk: FakeProduct, answering: Answering
) -> None:
    answer = f"年轮：我的记忆\n{answering.tree.help_text(OPEN['in a group'])}"
    await expect(app, matcher, event_of("/记忆"), answer)
    await expect(app, matcher, event_of("/nianlun"), answer)


@pytest.mark.parametrize(
    "message",
    [
        Message([MessageSegment.at(SELF), MessageSegment.text(" /记忆 今天")]),
        Message([MessageSegment.text("/记忆 今天 "), MessageSegment.at(SELF)]),
        Message("小年，/记忆 今天"),
        Message("小年 /记忆　今天"),
        Message("/记忆\n今天"),
    ],
)
async def test_a_command_may_be_addressed_to_the_bot(
    app: App,
    matcher: type[Matcher],
    desk: FakeProduct,
    message: Message,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nonebot.get_driver().config, "nickname", {"小年"})
    event = event_of(message)
    async with chatting(app, matcher) as (ctx, bot):
        _check_at_me(bot, event)
        _check_nickname(bot, event)
        ctx.receive_event(bot, event)
        ctx.should_call_send(event, MessageSegment.text(TODAY), bot=bot)


@pytest.mark.parametrize(
    ("before", "behind", "given"),
    [
        ("说过", "", ["@10001"]),
        ("说过", " 2", ["@10001", 2]),
        ("说过 小鹿", "", ["小鹿"]),
        ("找 爬山", "", ["爬山", "@10001"]),
        ("找 爬山 昨天 小鹿", "", ["爬山", "昨天", "小鹿"]),
        ("找 爬山 昨天", "", ["爬山", "昨天", "@10001"]),
        ("忘 a:b", "", ["a:b @10001"]),
        ("带 今天", "", ["今天"]),
    ],
)
async def test_the_bot_may_be_whom_a_command_names(
    desk: FakeProduct, before: str, behind: str, given: list[object]
) -> None:
    """Behind a command that names nobody it is an address."""
    got: list[object] = []

    async def take(asked: Asked) -> str:
        got.extend(asked.arguments.values())
        return "好"

    naming = partial(Command, names_person=True)
    commands = [
        naming("说过", "read", "", take, (Args["名字", str]["页;?", int],)),
        naming("找", "read", "", take, (Args["词", str]["谁;?", str]["时间;?", str],)),
        naming("忘", "read", "", take, (rest_of_line("分类"),)),
        Command("带", "read", "", take, (Args["日期;?", str]["版本;?", str],)),
    ]
    answering = Answering(FakeDesk(desk), commands, {"/"})
    typed = [MessageSegment.text(f"/记忆 {before} "), MessageSegment.at(SELF)]
    event = event_of(Message([*typed, *([MessageSegment.text(behind)] if behind else [])]))
    bot = cast(Bot, SimpleNamespace(self_id=str(SELF)))
    _check_at_me(bot, event)
    answer = await answering.answer(bot, event)
    assert answer is not None
    assert answer.text == "好"
    assert [" ".join(one.split()) if isinstance(one, str) else one for one in got] == given


@pytest.mark.parametrize("known", [True, False])
async def test_a_command_may_quote_a_message(
    app: App, matcher: type[Matcher], desk: FakeProduct, known: bool
) -> None:
    """Whether or not the other side can still say what was quoted."""
    event = event_of(
        Message(
            [
                MessageSegment.reply(5),
                MessageSegment.at(SELF),
                MessageSegment.text(" /记忆 今天 "),
                MessageSegment.at(SELF),
            ]
        )
    )
    quoted = {
        "time": 1,
        "message_type": "group",
        "message_id": 5,
        "real_id": 5,
        "sender": {"user_id": SELF, "nickname": "小年"},
        "message": [text_data("早")],
    }
    async with chatting(app, matcher) as (ctx, bot):
        if known:
            ctx.should_call_api("get_msg", {"message_id": 5}, quoted)
        else:
            failed = ActionFailed(retcode=200)
            ctx.should_call_api("get_msg", {"message_id": 5}, exception=failed)
        await _check_reply(bot, event)
        _check_at_me(bot, event)
        ctx.receive_event(bot, event)
        ctx.should_call_send(event, MessageSegment.text(TODAY), bot=bot)


@pytest.mark.parametrize("text", ["/记忆今天", "/NianLun 今天", "／nianlun今天"])
async def test_a_verb_may_follow_at_once(
    app: App, matcher: type[Matcher], desk: FakeProduct, text: str
) -> None:
    await expect(app, matcher, event_of(text), TODAY)


async def test_help_is_asked_for_in_more_than_one_way(
    answering: Answering, desk: FakeProduct
) -> None:
    bot = cast(Bot, SimpleNamespace(self_id=str(SELF)))
    for text in ("/nianlun", "/nianlun help", "/NIANLUN -H", "/记忆 Help", "／记忆", "/记忆 ？"):
        event = event_of(text)
        assert has_command(event.message, bot.self_id, {"/"}), text
        answer = await answering.answer(bot, event)
        assert answer is not None
        assert answer.title == "年轮：我的记忆", text


@pytest.mark.parametrize("text", ["/记忆力真好", "今天天气不错", "我说 /记忆 今天", "/回忆 今天"])
async def test_talk_is_left_alone(
    app: App, matcher: type[Matcher], desk: FakeProduct, text: str
) -> None:
    await expect_silence(app, matcher, event_of(text, role="owner"))


async def test_the_bots_own_lines_are_no_commands(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    await expect_silence(app, matcher, event_of("/记忆 今天", role="owner", user_id=SELF))


async def test_no_member_can_make_a_shortcut(
    app: App, matcher: type[Matcher], desk: FakeProduct, answering: Answering
) -> None:
    for typed in ("/记忆 --shortcut 偷 状态", "/记忆 状态 --shortcut 偷 状态"):
        answer = await answer_to(app, matcher, event_of(typed, role="owner"))
        assert answer.startswith("没看懂这条指令")
    assert [p.get_shortcuts() for p in answering.tree.parsers.values() if p.get_shortcuts()] == []
    for stolen in ("偷", "/偷"):
        await expect_silence(app, matcher, event_of(stolen, role="owner"))
    assert desk.asked == []


UNKNOWN = "没看懂这条指令，可以这样写：\n/记忆 帮助  看全部指令"


@pytest.mark.parametrize(
    "text",
    [
        "忘掉一切",
        "--helps",
        "-H 忘掉一切",
        "--comp",
        "--",
        '"今天',
        "上辈子",
        "{bot}",
        "2026-1-5x",
        "-g",
        "[CQ:at,qq=all]",
        "１２３",
        "x" * 10_000,
        "'" * 10_000,
        "昨天的昨天 那天 " * 500,
    ],
)
async def test_what_is_no_command_is_answered_with_the_way_to_help(
    app: App, matcher: type[Matcher], desk: FakeProduct, text: str
) -> None:
    answer = await answer_to(app, matcher, event_of(f"/记忆 {text}"))
    first, *usages, last = answer.splitlines()
    assert (first, last) == tuple(UNKNOWN.splitlines())
    assert len(usages) <= 3
    assert desk.asked == []


async def test_what_comes_near_a_slip_of_the_pen_is_told(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    answer = await answer_to(app, matcher, event_of("/记忆 可以记我吧"))
    assert answer.splitlines()[1] == "/记忆 可以记我"


@pytest.mark.parametrize("text", ["状态 昨天", "状态 状态", "状态 2026", "状态 给我"])
async def test_a_verb_used_wrongly_is_answered_with_its_usage(
    app: App, matcher: type[Matcher], desk: FakeProduct, text: str
) -> None:
    usage = "没看懂这条指令，可以这样写：\n/记忆 状态"
    await expect(app, matcher, event_of(f"/记忆 {text}", role="owner"), usage)


async def test_pictures_behind_a_verb_are_wrong_input(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    message = Message([MessageSegment.text("/记忆 今天 "), MessageSegment.image("a.jpg")])
    usage = "没看懂这条指令，可以这样写：\n/记忆 今天"
    await expect(app, matcher, event_of(message), usage)


async def test_wrong_input_says_nothing_to_those_who_may_not_read(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    desk.members_read = False
    await expect(app, matcher, event_of("/记忆 胡说"), UNREADABLE)


async def test_two_chats_may_use_one_message_id(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    await expect(app, matcher, event_of("/记忆 今天"), TODAY)
    await expect(app, matcher, event_of("/记忆 整理", kind="private", role=""), TIDY)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("2026-13-40", f"没有 2026-13-40 这个日期。{AS_DATES}"),
        ("2026-2-30", f"没有 2026-2-30 这个日期。{AS_DATES}"),
        ("2026年1月5日", A_DAY),
        ("今年1月5日那天", A_DAY),
        ("日期 2026-1-5", A_DAY),
        ("上个月", "2026-10 还没有写成记忆。可以先看其中的某一天。"),
        ("2026-11", "2026-11 还没有写成记忆。可以先看其中的某一天。"),
        ("2025", "2025 还没有写成记忆。可以先看其中的某一天。"),
        ("2026-11-29", TODAY),
        ("2026/01/05", A_DAY),
    ],
)
async def test_dates(
    app: App, matcher: type[Matcher], desk: FakeProduct, typed: str, answer: str
) -> None:
    await expect(app, matcher, event_of(f"/记忆 {typed}"), answer)


async def test_today_shows_the_memory_and_the_activities(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    desk.memories.append(replace(MEMORY, period="2026-11-29", text="我今天很忙。"))
    answer = (
        "2026-11-29（周日）\n我今天很忙。\n第 1 版 · 离线写手 · 2026-11-29 10:32\n\n"
        "&3 10:32 我和小鹿聊了草莓蛋糕。（#12）"
    )
    await expect(app, matcher, event_of("/记忆 今天"), answer)


async def test_a_past_day_shows_its_activities_only_until_it_has_a_memory(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    desk.notes = [replace(ACTIVITY, date="2026-11-28", time=NOW.replace(day=28, hour=1))]
    first = "2026-11-28（周六）\n&3 09:30 我和小鹿聊了草莓蛋糕。（#12）"
    await expect(app, matcher, event_of("/记忆 昨天"), first)
    desk.memories.append(replace(MEMORY, period="2026-11-28"))
    then = "2026-11-28（周六）\n我第一次来到这里。\n第 1 版 · 离线写手 · 2026-11-29 10:32"
    await expect(app, matcher, event_of("/记忆 昨天"), then)


@pytest.mark.parametrize(
    ("failure", "answer"),
    [
        (StoreLocked("数据库正被别的程序占着"), "没有做成：数据库正被别的程序占着"),
        (KeyError("secret"), "没有做成：程序出了意外，详情在机器人的日志里。"),
    ],
)
async def test_trouble_is_answered_with_one_line(
    app: App, matcher: type[Matcher], desk: FakeProduct, failure: Exception, answer: str
) -> None:
    desk.failure = failure
    logged: list[str] = []
    sink = logger.add(logged.append, level="WARNING", format="{message}")
    try:
        await expect(app, matcher, event_of("/记忆 今天"), answer)
    finally:
        logger.remove(sink)
    # What was foreseen says all there is to say itself; a fault of ours is to be found.
    assert ("Traceback" in "".join(logged)) is isinstance(failure, KeyError)
    assert len(logged) == 1


async def test_a_chat_that_is_not_served_gets_no_answer(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    desk.closed = frozenset({"123"})
    async with chatting(app, matcher) as (ctx, bot):
        ctx.receive_event(bot, event_of("/记忆 今天"))
    assert desk.asked == []


@pytest.mark.parametrize("works", [True, False])
async def test_a_long_day_is_a_bundle_or_else_plain_messages(
    app: App, matcher: type[Matcher], desk: FakeProduct, works: bool
) -> None:
    desk.notes = [replace(ACTIVITY, number=number, text="下雨了。") for number in range(1, 10)]
    text = "\n".join(
        ["2026-11-29（周日）", *(f"&{number} 10:32 下雨了。" for number in range(1, 10))]
    )
    event = event_of("/记忆 今天")
    node = MessageSegment.node_custom(SELF, "小年", Message(MessageSegment.text(text)))
    data = {"group_id": 123, "messages": [node]}
    async with chatting(app, matcher) as (ctx, bot):
        ctx.receive_event(bot, event)
        if works:
            ctx.should_call_api("send_group_forward_msg", data, {"message_id": 1})
        else:
            failed = ActionFailed(retcode=1404)
            ctx.should_call_api("send_group_forward_msg", data, exception=failed)
            ctx.should_call_send(event, MessageSegment.text(text), bot=bot)


async def test_an_answer_that_cannot_be_sent_breaks_nothing(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    event = event_of("/记忆 今天")
    async with chatting(app, matcher) as (ctx, bot):
        ctx.receive_event(bot, event)
        ctx.should_call_send(
            event, MessageSegment.text(TODAY), exception=ActionFailed(retcode=100), bot=bot
        )


ANYBODY = [
    ("group", "member", MEMBER),
    ("group", "", MEMBER),
    ("group", "owner", BOSS),
    ("private", "", MEMBER),
]
SAID_AT = NOW.replace(microsecond=0)


@pytest.mark.parametrize(("kind", "role", "user_id"), ANYBODY)
@pytest.mark.parametrize(
    ("verb", "call", "changes", "told"),
    [
        ("别记我", "opt_out", True, "从现在起不记你在这里说的话"),
        ("别记我", "opt_out", False, "本来就没有在记"),
        ("可以记我", "opt_in", True, "又会记你说的话"),
        ("可以记我", "opt_in", False, "本来就在记"),
    ],
)
async def test_everybody_may_opt_out_and_in(
    app: App,
    matcher: type[Matcher],
    desk: FakeProduct,
    kind: str,
    role: str,
    user_id: int,
    verb: str,
    call: str,
    changes: bool,
    told: str,
) -> None:
    desk.members_read, desk.changes = False, changes
    event = event_of(f"/记忆 {verb}", kind=kind, role=role, user_id=user_id)
    assert told in await answer_to(app, matcher, event)
    assert desk.done == [(call, str(user_id), SAID_AT)]


async def answer_to(app: App, matcher: type[Matcher], event: MessageEvent) -> str:
    """What is sent, whatever it is."""
    sent: list[str] = []

    async def note(bot: Bot, event: Any, message: Any, **kwargs: Any) -> None:
        sent.append(str(message))

    async with chatting(app, matcher) as (ctx, bot):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(bot), "send", note)
            ctx.receive_event(bot, event)
            await ctx.run()
    (text,) = sent
    return text


@pytest.mark.parametrize(("kind", "role", "user_id"), ANYBODY)
async def test_forgetting_wants_the_code_that_was_given(
    app: App, matcher: type[Matcher], desk: FakeProduct, kind: str, role: str, user_id: int
) -> None:
    async def say(text: str, by: int = user_id) -> str:
        event = event_of(text, kind=kind, role=role, user_id=by)
        return await answer_to(app, matcher, event)

    question = await say("/记忆 忘记我")
    assert "找不回来" in question
    code = question.rpartition(" ")[2]
    assert question.endswith(f"/记忆 忘记我 {code}")
    assert len(code) == 6
    other = f"{(int(code) + 1) % 1_000_000:06}"
    assert "确认码不对" in await say(f"/记忆 忘记我 {other}")
    assert "确认码不对" in await say(f"/记忆 忘记我 {code}", by=40004)
    assert desk.done == []
    answer = await say(f"/记忆 忘记我 {code}")
    assert "7 条消息，1 个名字，2 条关于你的事；3 篇记忆" in answer
    assert "备份和导出" in answer
    assert ("别人的话" in answer) is (kind == "group")
    assert "/记忆 别记我" in answer
    assert desk.done == [("forget", str(user_id), SAID_AT)]
    assert "确认码不对" in await say(f"/记忆 忘记我 {code}")
    assert len(desk.done) == 1


async def test_what_is_no_code_is_explained(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    for typed in ("/记忆 忘记我 12345", "/记忆 忘记我 小鹿", "/记忆 别记我 小鹿"):
        answer = await answer_to(app, matcher, event_of(typed))
        assert answer.startswith("没看懂这条指令")
    assert desk.done == []


async def test_the_anonymous_are_nobody_in_particular(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    event = event_of("/记忆 忘记我")
    event.sub_type = "anonymous"
    assert "匿名" in await answer_to(app, matcher, event)
    assert desk.asked == []


QUOTE = "他说：\"好\"  然后\n\n走了 'x' {bot} [CQ:at,qq=all] １２３ 👨‍👩‍👧"


@pytest.mark.parametrize("text", [QUOTE, "x" * 10_000, "a\u3000b", "说 说", "-g", "a -g 5 b"])
async def test_free_text_arrives_as_it_was_typed(
    app: App, matcher: type[Matcher], desk: FakeProduct, text: str
) -> None:
    await answer_to(app, matcher, event_of(f"/记忆 说 {text}", role="owner"))
    assert [said for said, _ in desk.said] == [text]


async def test_who_is_mentioned_in_free_text_is_named_by_number(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    message = Message([MessageSegment.text("/记忆 说 问"), MessageSegment.at(20003)])
    message += [MessageSegment.face(14), MessageSegment.text("好")]
    await answer_to(app, matcher, event_of(message, role="owner"))
    assert [said for said, _ in desk.said] == ["问 @20003 [表情:微笑]好"]


ELSEWHERE = ChatKey(str(SELF), "group", "456")


@pytest.mark.parametrize("typed", ["-g 456 今天", "今天 -g 456", "-g\u3000456\n今天"])
async def test_a_superuser_asks_about_another_chat_from_private(
    app: App, matcher: type[Matcher], desk: FakeProduct, typed: str
) -> None:
    desk.known = frozenset({ELSEWHERE})
    event = event_of(f"/记忆 {typed}", kind="private", role="", user_id=BOSS)
    await expect(app, matcher, event, TODAY)
    assert set(desk.asked) == {ELSEWHERE}


async def test_what_is_remembered_of_one_group_is_not_told_in_another(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    desk.known = frozenset({ELSEWHERE})
    event = event_of("/记忆 今天 -g 456", user_id=BOSS)
    async with chatting(app, matcher) as (ctx, bot):
        ctx.receive_event(bot, event)
        said = MessageSegment.text(TODAY)
        ctx.should_call_send(event, said, bot=bot, message_type="private")


async def test_an_unknown_chat_is_told_of(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    event = event_of("/记忆 今天 -u 99999", kind="private", role="", user_id=BOSS)
    answer = "没有做成：没有记录过 private:99999 这个会话"
    await expect(app, matcher, event, answer)


@pytest.mark.parametrize(
    ("role", "typed"),
    [
        ("member", "今天 -g 456"),
        ("owner", "-g 456 今天"),
        ("owner", "说 好 -g 456"),
        ("admin", "别记我 -u 30003"),
        ("member", "胡说 -g 456"),
    ],
)
async def test_nobody_else_reaches_another_chat(
    app: App, matcher: type[Matcher], desk: FakeProduct, role: str, typed: str
) -> None:
    desk.known = frozenset({ELSEWHERE})
    event = event_of(f"/记忆 {typed}", role=role)
    await expect(app, matcher, event, "-g 和 -u 只有机器人的主人可以用。")
    assert (desk.asked, desk.said, desk.done) == ([], [], [])


async def test_one_chat_at_a_time(app: App, matcher: type[Matcher], desk: FakeProduct) -> None:
    desk.known = frozenset({ELSEWHERE})
    event = event_of("/记忆 今天 -g 456 -g 123", user_id=BOSS)
    await expect(app, matcher, event, "一次只能说一个会话，请只写一个 -g 或 -u。")
    assert desk.asked == []


@pytest.mark.parametrize("works", [True, False])
async def test_a_picture_goes_before_its_text(
    app: App, matcher: type[Matcher], desk: FakeProduct, works: bool
) -> None:
    event = event_of("/记忆 画")
    failed = None if works else ActionFailed(retcode=1200, wording="rich media transfer failed")
    async with chatting(app, matcher) as (ctx, bot):
        ctx.receive_event(bot, event)
        ctx.should_call_send(event, MessageSegment.image(PNG), bot=bot, exception=failed)
        ctx.should_call_send(event, MessageSegment.text("画好了"), bot=bot)


async def test_help_on_one_command(app: App, matcher: type[Matcher], desk: FakeProduct) -> None:
    await expect(app, matcher, event_of("/记忆 帮助 说"), "/记忆 说 话  照着说〔管理〕")
    told = "　这份说明；写上一条指令的名字，就只说那一条〔所有人〕\n例如：/记忆 帮助 搜索"
    await expect(app, matcher, event_of("/记忆 帮助 帮助"), f"/记忆 帮助 [指令]\n{told}")
    await expect(app, matcher, event_of("/记忆 帮助 没有的"), UNKNOWN)


@pytest.mark.parametrize("takes", ["content", "path", "nothing"])
async def test_a_file_goes_to_the_asker_and_is_gone_then(
    app: App, matcher: type[Matcher], desk: FakeProduct, tmp_path: Path, takes: str
) -> None:
    desk.file = tmp_path / "group-123.jsonl"
    desk.file.write_bytes(b"{}")
    event = event_of("/记忆 带走", role="admin")
    data = {"user_id": MEMBER, "file": "base64://e30=", "name": desk.file.name}
    refused = ActionFailed(retcode=1400)
    async with chatting(app, matcher) as (ctx, bot):
        ctx.receive_event(bot, event)
        api = "upload_private_file"
        if takes == "content":
            ctx.should_call_api(api, data, None)
        else:
            ctx.should_call_api(api, data, exception=refused)
            data = {**data, "file": str(desk.file)}
            failed = refused if takes == "nothing" else None
            ctx.should_call_api(api, data, None, exception=failed)
        if takes == "nothing":
            told = MessageSegment.text("文件没有发出去，对方的 OneBot 一端不接收。")
            ctx.should_call_send(event, told, bot=bot, message_type="private")
    assert not desk.file.exists()


async def test_where_no_private_message_arrives_the_group_is_told(
    app: App, matcher: type[Matcher], desk: FakeProduct
) -> None:
    desk.known = frozenset({ELSEWHERE})
    event = event_of("/记忆 今天 -g 456", user_id=BOSS)
    async with chatting(app, matcher) as (ctx, bot):
        ctx.receive_event(bot, event)
        said, refused = MessageSegment.text(TODAY), ActionFailed(retcode=1200)
        ctx.should_call_send(event, said, bot=bot, message_type="private", exception=refused)
        told = "私聊发不到你那里：请加我好友，或在私聊里发这条指令。"
        ctx.should_call_send(event, MessageSegment.text(told), bot=bot)

"""The commands, from the event to what is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Any, cast
from zoneinfo import ZoneInfo

import nonebot
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
from nonebug import App
import pytest

from plugins.nonebot_plugin_nianlun.chat.delivery import LONG_LINES
from plugins.nonebot_plugin_nianlun.commands.matcher import register
from plugins.nonebot_plugin_nianlun.errors import StoreLocked
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.invariants import Inspection
from plugins.nonebot_plugin_nianlun.types import (
    Activity,
    ChatKey,
    ChatStatus,
    Forgotten,
    Memory,
    MemoryKind,
    TidyReport,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from nonebug.mixin.process import MatcherContext

SELF, MEMBER, BOSS = 10001, 20002, 30003
NOW = datetime(2026, 11, 29, 17, 30, tzinfo=UTC)  # 01:30 on the 30th, still the 29th's day

REFUSED = "只有群主、管理员和机器人的主人可以用这条指令。"
UNREADABLE = "只有群主、管理员和机器人的主人可以看这个群的记忆。"
HELP = """年轮：我的记忆
/记忆 帮助  这份说明
/记忆 状态  记了多少、还欠多少、有没有出错〔管理〕
/记忆 今天  今天记下的事
/记忆 昨天  昨天记下的事
/记忆 整理  把欠着的记录现在写完〔管理〕
/记忆 核对  看看有没有漏记、重记或对不上的地方〔管理〕
/记忆 别记我  从现在起不记你说的话
/记忆 可以记我  又开始记你说的话
/记忆 忘记我  清掉你说过的话和关于你的记忆，先要确认
/记忆 2026-01-05  那一天的记忆；2026-01 是那个月的，2026 是那一年的
〔管理〕群主、管理员和机器人的主人可用；私聊里都可以用。"""
STATUS = """年轮的状态
记录进行中，由离线写手来写
消息：9 条，待写 1 条，跳过 2 条，缺口 0 处
记忆：活动 3 条，日 4 篇，月 5 篇，年 6 篇
最近一条活动：还没有
最近一次汇总：还没有，下一次：还没有
今天用量：0 token
最近的错误：没有"""
TODAY = "2026-11-29（周日）\n&3 10:32 我和小鹿聊了草莓蛋糕。（#12）"
YESTERDAY = "2026-11-28（周六）我还没有记下什么。"
A_DAY = "2026-01-05（周一）\n我第一次来到这里。\n第 1 版 · 离线写手 · 2026-11-29 10:32"
TIDY = "整理过了：写了 1 条活动。"
SOUND = "没有问题：9 条消息、3 条活动、15 篇记忆都对得上。"
ANSWERS = {
    "帮助": HELP,
    "状态": STATUS,
    "今天": TODAY,
    "昨天": YESTERDAY,
    "2026-1-5": A_DAY,
    "整理": TIDY,
    "核对": SOUND,
}
READING = {"帮助", "今天", "昨天", "2026-1-5"}

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


@dataclass
class FakeDesk:
    """A desk with two chats of one memory, that can be told to fail."""

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

    async def tidy(self, chat: ChatKey) -> TidyReport:
        self._ask(chat)
        return TidyReport(activities=1, memories=0, declined=0, errors=())

    async def inspect(self, chat: ChatKey) -> Inspection:
        self._ask(chat)
        return Inspection(messages=9, activities=3, memories=15, findings=(), found=0)

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


@pytest.fixture(scope="module")
def registered() -> Iterator[tuple[type[Matcher], FakeDesk]]:
    desk = FakeDesk()
    matcher = register(desk, "小年")
    yield matcher, desk
    matcher.destroy()


@pytest.fixture
def desk(registered: tuple[type[Matcher], FakeDesk]) -> FakeDesk:
    """The registered desk, as new."""
    desk = registered[1]
    desk.__dict__.update(FakeDesk().__dict__)
    return desk


@pytest.fixture
def matcher(registered: tuple[type[Matcher], FakeDesk]) -> type[Matcher]:
    return registered[0]


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
    desk: FakeDesk,
    verb: str,
    members_read: bool,
    kind: str,
    role: str,
    user_id: int,
    rank: str,
) -> None:
    desk.members_read = members_read
    answer = ANSWERS[verb]
    if rank == "member" and not (members_read and verb in READING):
        answer = UNREADABLE if verb in READING else REFUSED
    elif verb == "帮助" and not members_read:
        answer = everything_governed(HELP)
    event = event_of(f"/记忆 {verb}", kind=kind, role=role, user_id=user_id)
    await expect(app, matcher, event, answer)
    if answer in (REFUSED, UNREADABLE):
        assert desk.asked == []
    peer = "123" if kind == "group" else str(user_id)
    assert {str(chat) for chat in desk.asked} <= {f"{kind}:{peer}"}


def everything_governed(text: str) -> str:
    title, *rows, legend = text.splitlines()
    own = ("/记忆 别记我", "/记忆 可以记我", "/记忆 忘记我")
    rows = [
        row if row.startswith(own) else f"{row.removesuffix('〔管理〕')}〔管理〕" for row in rows
    ]
    return "\n".join([title, *rows, legend])


async def test_the_word_alone_is_a_call_for_help(
    app: App, matcher: type[Matcher], desk: FakeDesk
) -> None:
    await expect(app, matcher, event_of("/记忆"), HELP)


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
    desk: FakeDesk,
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


@pytest.mark.parametrize("known", [True, False])
async def test_a_command_may_quote_a_message(
    app: App, matcher: type[Matcher], desk: FakeDesk, known: bool
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


@pytest.mark.parametrize("text", ["/记忆力真好", "今天天气不错", "我说 /记忆 今天", "/回忆 今天"])
async def test_talk_is_left_alone(
    app: App, matcher: type[Matcher], desk: FakeDesk, text: str
) -> None:
    await expect_silence(app, matcher, event_of(text, role="owner"))


async def test_the_bots_own_lines_are_no_commands(
    app: App, matcher: type[Matcher], desk: FakeDesk
) -> None:
    await expect_silence(app, matcher, event_of("/记忆 今天", role="owner", user_id=SELF))


async def test_no_member_can_make_a_shortcut(
    app: App, matcher: type[Matcher], desk: FakeDesk
) -> None:
    await expect(app, matcher, event_of("/记忆 --shortcut 偷 状态", role="owner"), USAGES)
    assert cast(Any, matcher).command().get_shortcuts() == []
    for stolen in ("偷", "/偷"):
        await expect_silence(app, matcher, event_of(stolen, role="owner"))
    assert desk.asked == []


USAGES = """没看懂这条指令，可以这样写：
/记忆 帮助
/记忆 状态
/记忆 今天
/记忆 昨天
/记忆 整理
/记忆 核对
/记忆 别记我
/记忆 可以记我
/记忆 忘记我
/记忆 2026-01-05"""


@pytest.mark.parametrize(
    "text",
    [
        "忘掉一切",
        "--help",
        "-h",
        "?",
        "--comp",
        "--",
        '"今天',
        "2026年1月5日",
        "{bot}",
        "2026-1-5x",
    ],
)
async def test_wrong_input_is_answered_with_the_usages(
    app: App, matcher: type[Matcher], desk: FakeDesk, text: str
) -> None:
    await expect(app, matcher, event_of(f"/记忆 {text}"), USAGES)


@pytest.mark.parametrize("text", ["状态 昨天", "状态 状态", "状态 2026", "状态 给我"])
async def test_a_verb_used_wrongly_is_answered_with_its_usage(
    app: App, matcher: type[Matcher], desk: FakeDesk, text: str
) -> None:
    usage = "没看懂这条指令，可以这样写：\n/记忆 状态"
    await expect(app, matcher, event_of(f"/记忆 {text}"), usage)


async def test_pictures_behind_a_verb_are_wrong_input(
    app: App, matcher: type[Matcher], desk: FakeDesk
) -> None:
    message = Message([MessageSegment.text("/记忆 今天"), MessageSegment.image("a.jpg")])
    usage = "没看懂这条指令，可以这样写：\n/记忆 今天"
    await expect(app, matcher, event_of(message), usage)


async def test_wrong_input_says_nothing_to_those_who_may_not_read(
    app: App, matcher: type[Matcher], desk: FakeDesk
) -> None:
    desk.members_read = False
    await expect(app, matcher, event_of("/记忆 胡说"), UNREADABLE)


async def test_two_chats_may_use_one_message_id(
    app: App, matcher: type[Matcher], desk: FakeDesk
) -> None:
    await expect(app, matcher, event_of("/记忆 今天"), TODAY)
    await expect(app, matcher, event_of("/记忆 整理", kind="private", role=""), TIDY)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("2026-13-40", "没有 2026-13-40 这个日期。请写成 2026-01-05、2026-01 或 2026。"),
        ("2026-2-30", "没有 2026-2-30 这个日期。请写成 2026-01-05、2026-01 或 2026。"),
        ("2026-11", "2026-11 还没有写成记忆。可以先看其中的某一天。"),
        ("2025", "2025 还没有写成记忆。可以先看其中的某一天。"),
        ("2026-11-29", TODAY),
        ("2026/01/05", A_DAY),
    ],
)
async def test_dates(
    app: App, matcher: type[Matcher], desk: FakeDesk, typed: str, answer: str
) -> None:
    await expect(app, matcher, event_of(f"/记忆 {typed}"), answer)


async def test_today_shows_the_memory_and_the_activities(
    app: App, matcher: type[Matcher], desk: FakeDesk
) -> None:
    desk.memories.append(replace(MEMORY, period="2026-11-29", text="我今天很忙。"))
    answer = (
        "2026-11-29（周日）\n我今天很忙。\n第 1 版 · 离线写手 · 2026-11-29 10:32\n\n"
        "&3 10:32 我和小鹿聊了草莓蛋糕。（#12）"
    )
    await expect(app, matcher, event_of("/记忆 今天"), answer)


async def test_a_past_day_shows_its_activities_only_until_it_has_a_memory(
    app: App, matcher: type[Matcher], desk: FakeDesk
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
    app: App, matcher: type[Matcher], desk: FakeDesk, failure: Exception, answer: str
) -> None:
    desk.failure = failure
    await expect(app, matcher, event_of("/记忆 今天"), answer)


async def test_a_chat_that_is_not_served_gets_no_answer(
    app: App, matcher: type[Matcher], desk: FakeDesk
) -> None:
    desk.closed = frozenset({"123"})
    async with chatting(app, matcher) as (ctx, bot):
        ctx.receive_event(bot, event_of("/记忆 今天"))
    assert desk.asked == []


@pytest.mark.parametrize("works", [True, False])
async def test_a_long_day_is_a_bundle_or_else_plain_messages(
    app: App, matcher: type[Matcher], desk: FakeDesk, works: bool
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
    app: App, matcher: type[Matcher], desk: FakeDesk
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
    desk: FakeDesk,
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
    app: App, matcher: type[Matcher], desk: FakeDesk, kind: str, role: str, user_id: int
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
    app: App, matcher: type[Matcher], desk: FakeDesk
) -> None:
    for typed in ("/记忆 忘记我 12345", "/记忆 忘记我 小鹿", "/记忆 别记我 小鹿"):
        answer = await answer_to(app, matcher, event_of(typed))
        assert answer.startswith("没看懂这条指令")
    assert desk.done == []


async def test_the_anonymous_are_nobody_in_particular(
    app: App, matcher: type[Matcher], desk: FakeDesk
) -> None:
    event = event_of("/记忆 忘记我")
    event.sub_type = "anonymous"
    assert "匿名" in await answer_to(app, matcher, event)
    assert desk.asked == []

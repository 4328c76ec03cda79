"""Answers the commands.

Annotations stay objects here: evaluating the text of one makes Python 3.13 warn in NoneBot.
"""

from datetime import date, timedelta
from typing import cast

from nonebot import get_driver, logger
from nonebot.adapters.onebot.v11 import ActionFailed, Bot, MessageEvent, NetworkError
from nonebot.matcher import Matcher
from nonebot_plugin_alconna import Alconna, Arparma, on_alconna

from ..capture.events import chat_of, sender_role, time_of
from ..chat.delivery import send_long
from ..errors import NianlunError
from ..types import ChatKey
from .about_me import AboutMe
from .desk import Desk
from .gate import CommandGate, command_body
from .periods import PERIOD_HINT, read_period
from .permissions import ABOUT_ONESELF, Role, may, refusal
from .tree import (
    BodyOnly,
    Request,
    build_tree,
    command_head,
    help_text,
    read_request,
    wrong_usage,
)
from .views import (
    activities_view,
    day_title,
    inspection_view,
    memory_view,
    status_view,
    tidy_view,
)

Page = tuple[str, str]
"""Title and text of an answer; the title may be empty."""


def register(desk: Desk, character: str) -> type[Matcher]:
    """Create the matcher that answers `/记忆 …`; `character` signs the long answers.

    Wants NoneBot initialised, the OneBot adapter registered and nonebot_plugin_alconna loaded.
    """
    starts = get_driver().config.command_start
    tree = build_tree(starts)
    about_me = AboutMe(desk, command_head(tree))
    matcher = on_alconna(
        tree,
        skip_for_unmatch=False,
        auto_send_output=False,
        extensions=[BodyOnly],
        use_origin=False,
        use_cmd_start=False,
        use_cmd_sep=False,
        response_self=False,
        priority=1,
        block=True,
    )
    matcher.permission = CommandGate(starts)

    @matcher.handle()
    async def _(bot: Bot, event: MessageEvent, parsed: Arparma) -> None:
        chat = chat_of(event, bot.self_id)
        if chat is None or not desk.hears(chat):
            return
        title, text = await _answer(desk, tree, about_me, chat, event, read_request(parsed))
        try:
            await send_long(bot, event, title, text, character=character, purpose="command")
        except (ActionFailed, NetworkError) as error:
            logger.warning(f"{chat} 的指令回答没有发出去：{error!r}")

    return matcher


async def _answer(
    desk: Desk,
    tree: Alconna,
    about_me: AboutMe,
    chat: ChatKey,
    event: MessageEvent,
    request: Request | None,
) -> Page:
    verb = request.verb if request else "帮助"
    if not may(
        verb,
        is_superuser=str(event.user_id) in desk.superusers,
        role=cast(Role, sender_role(event)),
        kind=chat.kind,
        members_read=desk.members_read,
    ):
        return "", refusal(verb)
    if request is None:
        body = command_body(event.message, chat.self_id)
        return "", wrong_usage(tree, body.extract_plain_text())
    try:
        if verb in ABOUT_ONESELF:
            return "", await _about_speaker(desk, about_me, chat, event, request)
        return await _serve(desk, tree, chat, request)
    except NianlunError as error:
        logger.opt(exception=error).warning(f"{chat} 的「{verb}」没有做成")
        return "", f"没有做成：{error}"
    except Exception as error:
        # Silence would look like a dead bot, and the log is all that can name a fault of ours.
        logger.opt(exception=error).error(f"{chat} 的「{verb}」出了意外")
        return "", "没有做成：程序出了意外，详情在机器人的日志里。"


async def _about_speaker(
    desk: Desk, about_me: AboutMe, chat: ChatKey, event: MessageEvent, request: Request
) -> str:
    if event.sub_type == "anonymous":
        return "匿名的人共用一个号码，我分不清是谁，请用自己的身份来说。"
    at = time_of(event, desk.clock.now())
    return await about_me.serve(chat, str(event.user_id), at, request)


async def _serve(desk: Desk, tree: Alconna, chat: ChatKey, request: Request) -> Page:
    match request.verb:
        case "帮助":
            return "年轮：我的记忆", help_text(tree, desk.members_read)
        case "状态":
            return "年轮的状态", status_view(await desk.status(chat), desk.calendar)
        case "整理":
            return "", tidy_view(await desk.tidy(chat))
        case "核对":
            return "", inspection_view(await desk.inspect(chat))
        case "今天":
            return await _day(desk, chat, _today(desk))
        case "昨天":
            return await _day(desk, chat, _today(desk) - timedelta(days=1))
        case _:
            return await _period(desk, chat, request.period)


async def _period(desk: Desk, chat: ChatKey, typed: str) -> Page:
    period = read_period(typed)
    if period is None:
        return "", f"没有 {typed} 这个日期。{PERIOD_HINT}"
    kind, key = period
    if kind == "day":
        return await _day(desk, chat, date.fromisoformat(key))
    memory = await desk.memory(chat, kind, key)
    if memory is None:
        return "", f"{key} 还没有写成记忆。可以先看其中的某一天。"
    return key, memory_view(memory, desk.calendar)


async def _day(desk: Desk, chat: ChatKey, day: date) -> Page:
    """A finished day shows its memory, today and a day without one (also) its activities."""
    key = day.isoformat()
    memory = await desk.memory(chat, "day", key)
    parts = [memory_view(memory, desk.calendar)] if memory else []
    if memory is None or day == _today(desk):
        activities = await desk.activities(chat, key)
        if activities:
            parts.append(activities_view(activities, desk.calendar))
    if not parts:
        return "", f"{day_title(key)}我还没有记下什么。"
    return day_title(key), "\n\n".join(parts)


def _today(desk: Desk) -> date:
    return desk.calendar.day_of(desk.clock.now())

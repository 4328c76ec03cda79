"""Puts the commands to work.

Annotations stay objects here: evaluating the text of one makes Python 3.13 warn in NoneBot.
"""

from typing import TYPE_CHECKING

from nonebot import get_driver, on_message
from nonebot.adapters.onebot.v11 import Bot, MessageEvent
from nonebot.matcher import Matcher

from .about_me import AboutMe
from .answering import Answering
from .carrying import Carrying
from .command import Command
from .correcting import Correcting
from .desk import Desk
from .drawing import Drawing
from .finding import Finding
from .gate import CommandGate
from .governing import Governing
from .looking import Looking
from .questioning import Questioning
from .sending import deliver

if TYPE_CHECKING:
    from ..lifecycle import Nianlun


def all_commands(nianlun: "Nianlun") -> list[Command]:
    """Every command but the one for help, in the order in which that shows them."""
    return [
        *Looking(nianlun).commands(),
        *Finding(nianlun).commands(),
        *Drawing(nianlun).commands(),
        *Questioning(nianlun).commands(),
        *Correcting(nianlun).commands(),
        *Governing(nianlun).commands(),
        *Carrying(nianlun).commands(),
        *AboutMe(nianlun).commands(),
    ]


def register(nianlun: "Nianlun") -> type[Matcher]:
    """Create the matcher that answers `/记忆 …`.

    Wants NoneBot initialised, the OneBot adapter registered and nonebot_plugin_alconna loaded.
    """
    starts = get_driver().config.command_start
    answering = Answering(Desk(nianlun), all_commands(nianlun), starts)
    return answer_with(answering, nianlun.character)


def answer_with(answering: Answering, character: str) -> type[Matcher]:
    """Create the matcher for these commands; `character` signs the long answers."""
    matcher = on_message(priority=1, block=True)
    matcher.permission = CommandGate(get_driver().config.command_start)

    @matcher.handle()
    async def _(bot: Bot, event: MessageEvent) -> None:
        answer = await answering.answer(bot, event)
        if answer is not None:
            await deliver(bot, event, answer, character=character)

    return matcher

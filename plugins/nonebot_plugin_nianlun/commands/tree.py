"""The tree of commands under `/记忆`, and the texts that are made from it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from nonebot.adapters.onebot.v11 import MessageEvent
from nonebot_plugin_alconna import (
    Alconna,
    Args,
    Arparma,
    Extension,
    Namespace,
    Subcommand,
    UniMessage,
    namespace,
)

from .gate import SEPARATORS, WORD, command_body
from .periods import PERIOD_SHAPE
from .permissions import ABOUT_ONESELF, READING, Verb

if TYPE_CHECKING:
    from nonebot.adapters import Bot, Event
    from nonebot.typing import T_State

PERIOD: Verb = "日期"
_PERIOD_EXAMPLE = "2026-01-05"
_PERIOD_NOTE = "那一天的记忆；2026-01 是那个月的，2026 是那一年的"
_NOTES: dict[Verb, str] = {
    "帮助": "这份说明",
    "状态": "记了多少、还欠多少、有没有出错",
    "今天": "今天记下的事",
    "昨天": "昨天记下的事",
    "整理": "把欠着的记录现在写完",
    "核对": "看看有没有漏记、重记或对不上的地方",
    "别记我": "从现在起不记你说的话",
    "可以记我": "又开始记你说的话",
    "忘记我": "清掉你说过的话和关于你的记忆，先要确认",
}

_ARGUMENTS: dict[Verb, list[Args]] = {"忘记我": [Args["code;?#确认码", "re:[0-9]{6}"]]}


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asked for."""

    verb: Verb
    period: str = ""
    """As typed; only with `日期`."""
    code: str = ""
    """As typed; only with `忘记我`."""


class BodyOnly(Extension):
    """Gives Alconna the command without its address.

    The library's own provider caches messages by platform id alone, and those collide
    between chats: one group would be answered with another's command.
    """

    @property
    def priority(self) -> int:
        return 1

    @property
    def id(self) -> str:
        return "nianlun:body"

    async def message_provider(
        self, event: Event, state: T_State, bot: Bot, use_origin: bool = False
    ) -> UniMessage | None:
        if not isinstance(event, MessageEvent):
            return None
        return UniMessage.of(command_body(event.message, str(event.self_id)), bot=bot)


def build_tree(starts: Collection[str]) -> Alconna:
    """The tree, with NoneBot's command starts as its prefixes."""
    with namespace(_namespace()):
        return Alconna(
            WORD,
            sorted(starts, key=len, reverse=True),
            *(
                Subcommand(verb, *_ARGUMENTS.get(verb, ()), help_text=note)
                for verb, note in _NOTES.items()
            ),
            Args[f"{PERIOD};?#{_PERIOD_NOTE}", f"re:{PERIOD_SHAPE}"],
        )


def read_request(parsed: Arparma) -> Request | None:
    """The one thing that was asked for; None when the input fits no usage."""
    if not parsed.matched:
        return None
    asked = [
        Request(cast(Verb, name), code=found.args.get("code", ""))
        for name, found in parsed.subcommands.items()
    ]
    if PERIOD in parsed.main_args:
        asked.append(Request(PERIOD, parsed.main_args[PERIOD]))
    if not asked:
        return Request("帮助")
    return asked[0] if len(asked) == 1 else None


def help_text(tree: Alconna, members_read: bool) -> str:
    """Every command with its meaning and who may use it."""
    open_to_all = ABOUT_ONESELF | (READING if members_read else frozenset())
    lines = [
        f"{usage}  {note}" + ("" if verb in open_to_all else "〔管理〕")
        for verb, usage, note in _usages(tree)
    ]
    return "\n".join([*lines, "〔管理〕群主、管理员和机器人的主人可用；私聊里都可以用。"])


def wrong_usage(tree: Alconna, text: str) -> str:
    """What to write instead of `text`: the usage of the verb in it, or else of all."""
    words = text.split()
    asked = words[1] if len(words) > 1 else ""
    usages = {verb: usage for verb, usage, _ in _usages(tree)}
    wanted = [usages[asked]] if asked in usages else list(usages.values())
    return "\n".join(["没看懂这条指令，可以这样写：", *wanted])


def command_head(tree: Alconna) -> str:
    """How a command begins: `/记忆`."""
    prefixes = [str(prefix) for prefix in tree.prefixes]
    return ("/" if "/" in prefixes else next(iter(prefixes), "")) + str(tree.command)


def _usages(tree: Alconna) -> list[tuple[str, str, str]]:
    """(verb, how it is typed, what it does) of every command in the tree."""
    head = command_head(tree)
    rows = [
        (node.name, f"{head} {node.name}", node.help_text)
        for node in tree.options
        if isinstance(node, Subcommand)
    ]
    for arg in tree.args.argument:
        rows.append((arg.name, f"{head} {_PERIOD_EXAMPLE}", arg.notice or ""))
    return rows


def _namespace() -> Namespace:
    """Ours, with Alconna's built-in options off.

    They are open to everybody: `--shortcut` would let any member rename commands. Their names
    go too, because the parser knows `?` and `--comp` even where they are disabled, and fails.
    """
    return Namespace(
        "nianlun",
        separators=tuple(SEPARATORS),
        enable_message_cache=False,
        disable_builtin_options={"help", "shortcut", "completion"},
        builtin_option_name={"help": set(), "shortcut": set(), "completion": set()},
    )

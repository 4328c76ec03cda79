"""The tree of commands under `/记忆`, and the texts that are made from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
import re
from typing import Any

from arclet.alconna import config
from nonebot_plugin_alconna import Alconna, Namespace, UniMessage, namespace

from ..memory.periods import names_time, time_of_words
from ..types import ChatKind
from .command import Command, Rest
from .gate import HELP_WORDS, WORD, behind_head
from .permissions import RIGHT_NAMES, Right
from .typed import CHINESE_QUOTED, Typed, says_something, take_apart, unquoted

HELP = "帮助"
PERIOD = "日期"
"""The verb that is not typed: `/记忆 2026-01-05`."""
_TIMES = {PERIOD, "时间"}
"""Arguments that are a time, which may be typed with blanks in it."""
_WORD = re.compile(r"""(?<!\S)(?:"[^"\\]*"|'[^'\\]*')(?!\S)|\S+""")
"""One that is quoted may have blanks in it."""
_MOST_WORDS = 16
"""Of a command that has a time in it."""
_PHONE_LINE = 24
"""So many characters fit into a line of a chat on a phone."""


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asked for."""

    command: Command
    arguments: Mapping[str, Any] | None
    """None when they do not fit the usage of the command."""
    about: tuple[tuple[ChatKind, str], ...] = ()
    """See `Typed`."""


class Tree:
    """All commands, each with a parser of its own: a word of one may be the name of another."""

    def __init__(self, commands: Sequence[Command], starts: Collection[str]) -> None:
        """`starts` are NoneBot's command starts."""
        self.commands = {command.verb: command for command in commands}
        self.head = command_head(starts)
        self._starts = frozenset(starts)
        # Others' commands must find as much room as they would without ours.
        config.command_max_count += len(self.commands)
        with namespace(_namespace()):
            self.parsers = {
                verb: Alconna(verb, *command.arguments, *command.options)
                for verb, command in self.commands.items()
            }
        self._words_before_rest = {
            verb: count
            for verb, command in self.commands.items()
            if (count := _words_before_rest(command)) is not None
        }

    def read(self, text: str) -> Request:
        """The one thing that a command of this text asks for."""
        body = behind_head(text, self._starts)
        if body is None:  # a picture or a face stands right behind it
            return Request(self.commands[PERIOD], {PERIOD: (text,)}, ())
        typed = take_apart(body, self._words_before_rest)
        if not typed.words:
            return Request(self.commands[HELP], {}, typed.about)
        verb = HELP if typed.verb.lower() in HELP_WORDS else typed.verb
        if verb in self.commands:
            arguments = self._arguments(verb, typed)
            if arguments is not None or not names_time(" ".join(typed.words)):  # 昨天 下午
                return Request(self.commands[verb], arguments, typed.about)
        # Whether it is a date is for the command to say.
        return Request(self.commands[PERIOD], {PERIOD: typed.words}, typed.about)

    def _arguments(self, verb: str, typed: Typed) -> dict[str, Any] | None:
        command = self.commands[verb]
        if len(typed.words) > 1 and not (command.arguments or command.options):
            return None  # Alconna fails on quotation marks where it expects no argument
        before = " ".join(map(unquoted, typed.words[1:]))
        if before and typed.rest and names_time(f"{before} {typed.rest}"):
            return None  # 昨天 上午: the text was forgotten
        words = CHINESE_QUOTED.sub(
            lambda quoted: f'"{quoted[quoted.lastindex or 0]}"', " ".join(typed.words[1:])
        )
        if any(argument.name in _TIMES for args in command.arguments for argument in args.argument):
            words = _with_times_joined(words)
        message = UniMessage.text(f"{verb} {words}")
        if typed.rest:
            message += Rest(typed.rest)
        parsed = self.parsers[verb].parse(message)
        if not parsed.matched:
            return None
        found = {
            name: value.text if isinstance(value, Rest) else value
            for name, value in parsed.all_matched_args.items()
        }
        if not all(map(_is_given, found.values())):
            return None
        return {**dict.fromkeys(parsed.options, True), **found}

    def help_text(self, open_to: Collection[Right]) -> str:
        """Every command with its meaning, and who may use it where that is not everybody who may
        use what is in `open_to`."""
        lines: list[str] = []
        for command in self.commands.values():
            if command.group:
                lines.append(f"【{command.group}】")
            mark = "" if command.right in open_to else f"〔{RIGHT_NAMES[command.right]}〕"
            lines.append(self._entry(command, mark))
        return "\n".join(
            [
                *lines,
                "〔管理〕群主、管理员和机器人的主人可用，私聊里都可以用；〔主人〕只有机器人的主人可用。",
            ]
        )

    def own_help(self) -> str:
        """What is left to somebody who may not see the memory."""
        own = [command for command in self.commands.values() if command.right == "own"]
        own += [command for command in self.commands.values() if command.right == "all"]
        entries = [self._entry(command, "") for command in own]
        return "\n".join(["你可以用的：", *entries])

    def help_on(self, command: Command) -> str:
        """One command with its meaning, who may use it, and an example."""
        lines = [self._entry(command, f"〔{RIGHT_NAMES[command.right]}〕")]
        if command.example:
            lines.append(f"例如：{self.head} {command.verb} {command.example}")
        return "\n".join(lines)

    def _entry(self, command: Command, mark: str) -> str:
        usage, told = self.usage(command), f"{command.note}{mark}"
        between = "  " if len(usage) + len(told) < _PHONE_LINE else "\n　"
        return f"{usage}{between}{told}"

    def usage(self, command: Command) -> str:
        """How a command is typed."""
        verb = "" if command.verb == PERIOD else f" {command.verb}"
        return f"{self.head}{verb} {command.usage}".rstrip()

    def wrong_usage(self, command: Command) -> str:
        """What to write instead of arguments that do not fit."""
        lines = ["没看懂这条指令，可以这样写：", self.usage(command)]
        if command.example and command.verb != PERIOD:
            lines.append(f"例如：{self.head} {command.verb} {command.example}")
        return "\n".join(lines)

    def unknown(self, word: str) -> str:
        """What to write instead of a word that is neither a verb nor a date."""
        near = get_close_matches(word[:20], self.commands, n=3, cutoff=0.5)
        usages = [self.usage(self.commands[verb]) for verb in near if verb != PERIOD]
        return "\n".join(
            ["没看懂这条指令，可以这样写：", *usages, f"{self.head} {HELP}  看全部指令"]
        )


def command_head(starts: Collection[str]) -> str:
    """How a command begins: `/记忆`."""
    return ("/" if "/" in starts else max(starts, key=len, default="")) + WORD


def _is_given(value: object) -> bool:
    """Whether an argument is more than a pair of quotation marks around nothing."""
    words = value if isinstance(value, tuple) else (value,)
    return all(says_something(word) for word in words if isinstance(word, str))


def _with_times_joined(text: str) -> str:
    """`text` with quotation marks around every time of several words: 11 月 28 日.

    A month or year before a number stays apart, for no argument to fit: in 11 月 28 the 28 may
    be a day or a version.
    """
    words: list[str] = _WORD.findall(text)
    if len(words) > _MOST_WORDS:
        return text
    joined: list[str] = []
    while words:
        time = time_of_words(words)
        behind = "".join(words[time[0] : time[0] + 1]) if time else ""
        if time and re.search("[0-9][年月]$", time[1]) and behind.isdecimal():
            time = None
        joined.append(words[0] if time is None else f'"{time[1]}"')
        del words[: 1 if time is None else time[0]]
    return " ".join(joined)


def _words_before_rest(command: Command) -> int | None:
    """How many words stand before the free text that a command ends in; None without one."""
    arguments = [argument for args in command.arguments for argument in args.argument]
    for index, argument in enumerate(arguments):
        if argument.value.origin is Rest:
            return index
    return None


def _namespace() -> Namespace:
    """Ours, with Alconna's built-in options off.

    They are open to everybody: `--shortcut` would let any member rename commands. Their names
    go too, because the parser knows `?` and `--comp` even where they are disabled, and fails.
    """
    return Namespace(
        "nianlun",
        enable_message_cache=False,
        disable_builtin_options={"help", "shortcut", "completion"},
        builtin_option_name={"help": set(), "shortcut": set(), "completion": set()},
    )

"""Who the character is: Markdown files that are read as they stand, never formatted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
import re
from threading import Lock

from ..errors import ConfigError, PromptTooSmall
from ..memory.render import one_line
from ..types import ChatKey

DEFAULT_PERSONA = Path(__file__).with_name("persona.md")
RULES = Path(__file__).with_name("rules.md")
_LARGEST = 200_000
"""Bytes; no budget has room for more."""
_NAME = re.compile(r"[^\s/\\:.][^/\\:\x00-\x1f]{0,63}")
"""A file of the folder itself: no way out of it, and nothing hidden."""


def load_persona(path: Path | None, character: str) -> str:
    """The persona's text with the character's name before it.

    Raises ConfigError when the file cannot be read or is empty.
    """
    file = path or DEFAULT_PERSONA
    try:
        with file.open("rb") as opened:
            raw = opened.read(_LARGEST + 1)
        text = raw.decode("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"读不了人设文件 {file}（NIANLUN__PERSONA_FILE）：{error}") from error
    if len(raw) > _LARGEST:
        raise ConfigError(f"人设文件 {file} 太大了（NIANLUN__PERSONA_FILE）")
    if not text:
        raise ConfigError(f"人设文件 {file} 是空的（NIANLUN__PERSONA_FILE）")
    return f"你叫{character}。\n\n{text}"


def reply_rules() -> str:
    """How to take part in a chat: constant text that follows the persona."""
    return RULES.read_text(encoding="utf-8").strip()


class Personas:
    """The personas in use, each read again when its file has changed.

    A chat may have one of its own: the name of a `.md` file, with or without the ending, in the
    folder of NIANLUN__PERSONA_FILE. A name may come with an imported file, so it is never a path.
    """

    def __init__(self, path: Path | None, character: str) -> None:
        """Raises ConfigError when the persona of all chats cannot be read."""
        self._path = path
        self._character = character
        self._troubles: dict[ChatKey, tuple[str | None, str]] = {}
        stamp = _stamp(path or DEFAULT_PERSONA)
        self._known: dict[str | None, tuple[object, str]] = {}
        self._known[None] = (stamp, load_persona(path, character))
        self._last: dict[ChatKey, str | None] = {}
        self._looking = Lock()
        """Replies look from one thread, and from another where they have waited too long."""

    @property
    def default(self) -> str:
        """That of chats without their own, as it was read last."""
        return self._known[None][1]

    @property
    def trouble(self) -> str | None:
        """Why some chat has not the persona that it should have."""
        return next((reason for _, reason in list(self._troubles.values())), None)

    def text(self, chat: ChatKey, name: str | None, check: Callable[[str], None]) -> str:
        """The persona of a chat whose own is called so, as its file stands now.

        `check` raises PromptTooSmall for what no prompt has room for. What cannot be used leaves
        the last text that could, or else that of all chats, and is the `trouble` until it can.
        Reads the disk.
        """
        name = name or None
        with self._looking:
            self._last[chat] = name
            try:
                self._look(name, check)
            except (ConfigError, PromptTooSmall) as error:
                self._troubles[chat] = (name, str(error))
            else:
                for other, (of, _) in list(self._troubles.items()):
                    if other == chat or of == name:
                        self._troubles.pop(other, None)
            return self._of(name)

    def last(self, chat: ChatKey) -> str:
        """The persona that this chat was found to have last, as it was read last."""
        return self._of(self._last.get(chat))

    def _of(self, name: str | None) -> str:
        return self._known[name][1] if name in self._known else self.default

    def names(self) -> list[str]:
        """What a chat may have as its own. Reads the disk."""
        if self._path is None:
            return []
        found = (file.stem for file in self._path.parent.glob("*.md") if file != self._path)
        return sorted(name for name in found if _NAME.fullmatch(name) and name == one_line(name))

    def try_out(self, name: str, check: Callable[[str], None]) -> None:
        """Raises ConfigError or PromptTooSmall for a persona that cannot be used."""
        self._look(name, check)

    def _look(self, name: str | None, check: Callable[[str], None]) -> None:
        file = self._file(name)
        # Before the text: what is written while it is read is read again.
        stamp = _stamp(file)
        if name not in self._known or self._known[name][0] != stamp:
            text = load_persona(file, self._character)
            check(text)
            self._known[name] = (stamp, text)

    def _file(self, name: str | None) -> Path:
        if name is None:
            return self._path or DEFAULT_PERSONA
        shown = one_line(name)[:80]
        if self._path is None:
            raise ConfigError(f"设置 NIANLUN__PERSONA_FILE 之后，才能用同一文件夹里的人设 {shown}")
        if not _NAME.fullmatch(name) or name != one_line(name):
            raise ConfigError(f"{shown!r} 不是人设的名字：请写成文件名，不带文件夹")
        return self._path.with_name(f"{name.removesuffix('.md')}.md")


def _stamp(file: Path) -> tuple[int, int] | None:
    """What differs when a file was written anew; None when it cannot be looked at."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size

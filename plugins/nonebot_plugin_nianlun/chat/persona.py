"""Who the character is: a Markdown file that is read as it stands, never formatted."""

from __future__ import annotations

from pathlib import Path

from ..errors import ConfigError

DEFAULT_PERSONA = Path(__file__).with_name("persona.md")
RULES = Path(__file__).with_name("rules.md")


def load_persona(path: Path | None, character: str) -> str:
    """The persona's text with the character's name before it.

    Raises ConfigError when the file cannot be read or is empty.
    """
    file = path or DEFAULT_PERSONA
    try:
        text = file.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"读不了人设文件 {file}（NIANLUN__PERSONA_FILE）：{error}") from error
    if not text:
        raise ConfigError(f"人设文件 {file} 是空的（NIANLUN__PERSONA_FILE）")
    return f"你叫{character}。\n\n{text}"


def reply_rules() -> str:
    """How to take part in a chat: constant text that follows the persona."""
    return RULES.read_text(encoding="utf-8").strip()

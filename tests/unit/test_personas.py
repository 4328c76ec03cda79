"""The character's files: read as they stand, again when they change, never a path."""

from __future__ import annotations

from itertools import count
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.chat.persona import (
    DEFAULT_PERSONA,
    Personas,
    load_persona,
    reply_rules,
)
from plugins.nonebot_plugin_nianlun.errors import ConfigError, PromptTooSmall
from plugins.nonebot_plugin_nianlun.memory.tokens import estimate_tokens
from plugins.nonebot_plugin_nianlun.types import ChatKey

MOMENTS = count(1_790_000_000)
GROUP, OTHER = ChatKey("10001", "group", "1"), ChatKey("10001", "group", "2")


def fits(text: str) -> None:
    if "太长" in text:
        raise PromptTooSmall("放不下")


@pytest.fixture
def main(tmp_path: Path) -> Path:
    return write(tmp_path / "conf" / "persona.md", "一只猫")


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    # A file system may have coarse times, and a test is quick.
    os.utime(path, times=(moment := next(MOMENTS), moment))
    return path


def test_a_text_is_never_formatted(main: Path) -> None:
    write(main, "\ufeff爱说 {character} 和 {0} %s $x {{\n")
    assert load_persona(main, "{me}") == "你叫{me}。\n\n爱说 {character} 和 {0} %s $x {{"


@pytest.mark.parametrize("content", ["", " \n", b"\xff\xfe\xfa", "长" * 100_000])
def test_what_cannot_be_used_is_an_error_at_start(main: Path, content: str | bytes) -> None:
    write(main, content)
    with pytest.raises(ConfigError, match="NIANLUN__PERSONA_FILE"):
        Personas(main, "小忆")
    with pytest.raises(ConfigError, match="NIANLUN__PERSONA_FILE"):
        Personas(main.parent, "小忆")


def test_a_changed_file_is_read_again(main: Path) -> None:
    personas = Personas(main, "小忆")
    assert personas.text(GROUP, None, fits) == "你叫小忆。\n\n一只猫"
    write(main, "一只大狗")
    assert personas.text(GROUP, None, fits) == "你叫小忆。\n\n一只大狗"
    assert personas.default == "你叫小忆。\n\n一只大狗"


@pytest.mark.parametrize("content", ["", b"\xff\xfa", "太长了", None])
def test_trouble_keeps_the_last_good_text_and_tells(
    main: Path, content: str | bytes | None
) -> None:
    personas = Personas(main, "小忆")
    if content is None:
        main.unlink()
    else:
        write(main, content)
    assert personas.text(GROUP, None, fits) == "你叫小忆。\n\n一只猫"
    assert personas.text(OTHER, None, fits) == "你叫小忆。\n\n一只猫"
    assert personas.trouble is not None
    write(main, "又好起来了")
    assert personas.text(GROUP, None, fits) == "你叫小忆。\n\n又好起来了"
    assert personas.trouble is None


def test_a_chat_may_have_its_own(main: Path) -> None:
    write(main.parent / "海盗.md", "嚯嚯")
    personas = Personas(main, "小忆")
    assert personas.text(GROUP, "海盗", fits) == "你叫小忆。\n\n嚯嚯"
    assert personas.text(GROUP, "海盗.md", fits) == "你叫小忆。\n\n嚯嚯"
    assert personas.text(OTHER, "", fits) == "你叫小忆。\n\n一只猫"
    assert personas.trouble is None


def test_a_chat_whose_own_is_missing_has_that_of_all(main: Path) -> None:
    personas = Personas(main, "小忆")
    assert personas.text(GROUP, "没有", fits) == personas.default
    assert "没有.md" in str(personas.trouble)
    personas.text(OTHER, None, fits)
    assert personas.trouble is not None
    personas.text(GROUP, None, fits)
    assert personas.trouble is None


def test_without_a_folder_there_is_only_the_one_shipped() -> None:
    personas = Personas(None, "小忆")
    assert personas.text(GROUP, "rules", fits) == personas.default
    assert "NIANLUN__PERSONA_FILE" in str(personas.trouble)


@pytest.mark.parametrize(
    "name", ["../secret", "..", "sub/other", "/etc/passwd", "C:x", "..\\secret", ".hidden", "a\0"]
)
def test_a_name_is_never_a_path(main: Path, name: str) -> None:
    for place in ("secret.md", "conf/.hidden.md", "sub/other.md"):
        write(main.parent.parent / place, "偷看")
    personas = Personas(main, "小忆")
    assert personas.text(GROUP, name, fits) == personas.default
    assert "文件名" in str(personas.trouble)


@given(st.text(st.characters(codec=None) | st.sampled_from("./\\:\0\n\ud800{}"), max_size=90))
def test_no_name_makes_a_reply_fail(name: str) -> None:
    personas = Personas(DEFAULT_PERSONA, "小忆")
    text = personas.text(GROUP, f"x{name}", fits)
    assert text == personas.default
    assert "\n" not in str(personas.trouble)


def test_what_is_shipped_leaves_room() -> None:
    text = load_persona(None, "年轮")
    assert estimate_tokens(f"{text}\n\n{reply_rules()}") < 900
    assert "记不清" in text
    assert "不是转发的人说的" in reply_rules()

"""The tables of commands in both READMEs are those of the product."""

from __future__ import annotations

from pathlib import Path
import re

import pytest

from plugins.nonebot_plugin_nianlun import nianlun
from plugins.nonebot_plugin_nianlun.commands.answering import Answering
from plugins.nonebot_plugin_nianlun.commands.desk import Desk
from plugins.nonebot_plugin_nianlun.commands.gate import ALIAS, VERBS
from plugins.nonebot_plugin_nianlun.commands.matcher import all_commands
from plugins.nonebot_plugin_nianlun.commands.permissions import RIGHT_NAMES, Right

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `/记忆 ([^`]+)`(?: \([^)]*\))? \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
ENGLISH: dict[Right, str] = {
    "all": "everybody",
    "read": "members",
    "govern": "admins",
    "own": "oneself",
    "owner": "superusers",
}


@pytest.mark.parametrize(("name", "names"), [("README.md", RIGHT_NAMES), ("README.en.md", ENGLISH)])
def test_the_table_names_every_command_with_its_usage_and_right(
    name: str, names: dict[Right, str]
) -> None:
    tree = Answering(Desk(nianlun), all_commands(nianlun), {"/"}).tree
    usages = {
        tree.usage(command).removeprefix("/记忆 "): names[command.right]
        for command in tree.commands.values()
    }
    rows = ROW.findall((ROOT / name).read_text("utf-8"))
    assert len(rows) == len(dict(rows))
    assert {usage.replace("\\", "").replace("&#124;", "|"): who for usage, who in rows} == usages
    assert f"/{ALIAS}" in (ROOT / name).read_text("utf-8")


def test_every_verb_is_known_before_there_is_a_tree() -> None:
    tree = Answering(Desk(nianlun), all_commands(nianlun), {"/"}).tree
    assert set(tree.commands) == VERBS


def test_every_command_is_explained_in_one_line_and_shows_how_it_is_used() -> None:
    for command in all_commands(nianlun):
        assert command.note
        assert not set("\n|") & set(command.note), command.verb
        assert bool(command.usage) == bool(command.arguments or command.options), command.verb

"""The walls of the layout: who may import what, and what the repository may not contain."""

from __future__ import annotations

import ast
from collections.abc import Iterator
import importlib
from pathlib import Path
import re

import pytest

from plugins.nonebot_plugin_nianlun.config import Settings

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "plugins" / "nonebot_plugin_nianlun"
FILES = sorted(PACKAGE.rglob("*.py"))
MIGRATIONS = sorted((PACKAGE / "store" / "migrations").glob("[0-9]*.py"))
SOURCES = [file for file in FILES if file not in MIGRATIONS]
ADDITIVE = {"CreateModel", "AddField", "AddIndex", "RunPython"}
ONEBOT_ROOMS = {"capture", "chat", "commands", "__init__.py", "lifecycle.py"}


def name_of(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"), str(file))


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Level and dotted name of everything that a file imports, at whatever depth of its code."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield node.level, module
            # `from . import store` names the module in its names, `from nonebot import x` as well.
            yield from ((node.level, f"{module}.{a.name}".lstrip(".")) for a in node.names)


def outside(file: Path) -> set[str]:
    return {name for level, name in imports(file) if level == 0}


def inside(file: Path) -> set[str]:
    """What a file imports from its own package, as paths from the package's root."""
    here = file.relative_to(PACKAGE).parts[:-1]
    found: set[str] = set()
    for level, name in imports(file):
        if level:
            base = here[: len(here) - level + 1]
            found.add(".".join([*base, name]) if name else ".".join(base))
    return found


def starts(names: set[str], *prefixes: str) -> set[str]:
    return {n for n in names for p in prefixes if n == p or n.startswith(f"{p}.")}


def test_there_is_something_to_check() -> None:
    assert {"memory/upkeep.py", "store/database.py", "llm/client.py"} <= set(map(name_of, FILES))
    assert MIGRATIONS
    assert starts(outside(PACKAGE / "store" / "models.py"), "tortoise")
    assert starts(inside(PACKAGE / "store" / "memories.py"), "memory.rollups")


@pytest.mark.parametrize("file", sorted((PACKAGE / "memory").rglob("*.py")), ids=name_of)
def test_memory_is_pure(file: Path) -> None:
    foreign = starts(outside(file), "nonebot", "tortoise", "openai", "fastapi", "starlette")
    foreign |= {n for n in outside(file) if n.startswith("nonebot")}
    rooms = starts(inside(file), "store", "capture", "llm", "chat", "commands")
    rooms |= starts(inside(file), "lifecycle", "jobs", "cli", "config")
    assert foreign | rooms == set()


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_each_library_stays_in_its_room(file: Path) -> None:
    room = file.relative_to(PACKAGE).parts[0]
    used = outside(file)
    if room != "store":
        assert starts(used, "tortoise", "aiosqlite", "sqlite3", "pypika_tortoise") == set()
    if room != "llm":
        assert starts(used, "openai", "httpx") == set()
    if room not in ONEBOT_ROOMS:
        assert starts(used, "nonebot.adapters.onebot") == set()
    if room != "commands":
        assert starts(used, "nonebot_plugin_alconna", "arclet") == set()
    if room not in {"panel", "api"}:
        assert starts(used, "fastapi", "starlette") == set()
    if room != "pictures":
        assert starts(used, "PIL") == set()


@pytest.mark.parametrize("file", sorted((PACKAGE / "pictures").rglob("*.py")), ids=name_of)
def test_pictures_are_drawn_from_numbers_alone(file: Path) -> None:
    assert {name for name in outside(file) if name.startswith("nonebot")} == set()
    foreign = {n for n in inside(file) if not n.startswith(("pictures", "memory.moods"))}
    assert foreign - {"memory"} == set()


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_only_commands_show_pictures(file: Path) -> None:
    if file.relative_to(PACKAGE).parts[0] not in {"commands", "pictures"}:
        assert starts(inside(file), "pictures") == set()


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_the_package_names_itself_only_relatively(file: Path) -> None:
    assert starts(outside(file), "plugins", "nonebot_plugin_nianlun") == set()
    literals = {n.value for n in ast.walk(tree(file)) if isinstance(n, ast.Constant)}
    assert [v for v in literals if isinstance(v, str) and v.startswith("plugins.")] == []
    for level, _ in imports(file):
        assert level <= len(file.relative_to(PACKAGE).parts)


def test_no_drawer_for_everything() -> None:
    assert [name_of(f) for f in FILES if f.stem in {"utils", "util", "helpers", "common"}] == []


@pytest.mark.parametrize("file", SOURCES, ids=name_of)
def test_no_file_is_longer_than_one_can_read(file: Path) -> None:
    assert len(file.read_text("utf-8").splitlines()) <= 400


@pytest.mark.parametrize("file", MIGRATIONS, ids=lambda file: file.stem)
def test_migrations_only_add_and_stand_alone(file: Path) -> None:
    module = tree(file)
    classes = [n for n in module.body if isinstance(n, ast.ClassDef)]
    (lists,) = [
        node.value
        for node in classes[0].body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "operations"
    ]
    assert isinstance(lists, ast.List)
    calls = [item.func for item in lists.elts if isinstance(item, ast.Call)]
    assert len(calls) == len(lists.elts) > 0
    assert {ast.unparse(call).rpartition(".")[2] for call in calls} <= ADDITIVE
    assert inside(file) == set()
    known = starts(outside(file), "tortoise", "json", "datetime", "__future__")
    assert outside(file) - known == set()
    assert "plugins" not in file.read_text("utf-8")


def test_every_setting_is_explained_and_nothing_else() -> None:
    lines = (ROOT / ".env.example").read_text("utf-8").splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == []
    keys = re.findall(r"^# ?([A-Z][A-Z0-9_]*)=", "\n".join(lines), re.MULTILINE)
    assert len(keys) == len(set(keys))
    ours = {key for key in keys if key.startswith("NIANLUN")}
    assert ours == {f"NIANLUN__{name.upper()}" for name in Settings.model_fields}
    nonebot = {"HOST", "PORT", "SUPERUSERS", "NICKNAME", "COMMAND_START", "ONEBOT_ACCESS_TOKEN"}
    assert set(keys) - ours == nonebot | {"OPENAI_API_KEY", "OPENAI_BASE_URL"}
    for number, line in enumerate(lines):
        if re.match(r"# ?[A-Z][A-Z0-9_]*=", line):
            meaning = lines[number - 1]
            assert meaning.startswith("# "), line
            assert re.search(r"[\u4e00-\u9fff]", meaning), line


def test_the_example_of_each_setting_is_accepted() -> None:
    text = (ROOT / ".env.example").read_text("utf-8")
    values = dict(re.findall(r"^# ?NIANLUN__([A-Z0-9_]+)=(.*)$", text, re.MULTILINE))
    plain = {k.lower(): v for k, v in values.items() if not v.startswith(("{", "["))}
    assert len(plain) > 10
    Settings.model_validate(plain)


@pytest.mark.parametrize(
    "name", ["requirements.lock", "pyproject.toml", "README.md", "README.en.md", "CHANGELOG.md"]
)
def test_no_registry_is_named(name: str) -> None:
    file = ROOT / name
    if not file.exists():
        pytest.fail(f"{name} is missing")
    text = file.read_text("utf-8")
    hosts = set(re.findall(r"https?://([\w.-]+)", text))
    assert {h for h in hosts if re.search(r"pypi|pythonhosted|mirror|simple|tuna", h)} == set()
    assert not re.search(r"(?m)^\s*(-i|--index-url|--extra-index-url|--find-links)\b", text)


def test_public_names_exist() -> None:
    package = importlib.import_module("plugins.nonebot_plugin_nianlun")
    assert [name for name in package.__all__ if not hasattr(package, name)] == []

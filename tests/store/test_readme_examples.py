"""The examples of the READMEs run as they stand."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator
import inspect
from pathlib import Path
import re
import types
from typing import Any

import nonebot
from openai import OpenAI
import pytest

from plugins import nonebot_plugin_nianlun
from plugins.nonebot_plugin_nianlun.config import Config
from plugins.nonebot_plugin_nianlun.lifecycle import Nianlun
from tests.support.model_server import ModelServer, completion

ROOT = Path(__file__).resolve().parents[2]
HEADINGS = {"README.md": "给其他程序用", "README.en.md": "For other programs"}


def examples(name: str) -> list[str]:
    """The Python blocks of the section about other programs."""
    _, _, section = (ROOT / name).read_text("utf-8").partition(HEADINGS[name])
    return re.findall(r"```python\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)


@pytest.fixture
async def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Nianlun]:
    nianlun = Nianlun(Config(), tmp_path, nonebot.get_driver().config)
    monkeypatch.setattr(nonebot_plugin_nianlun, "nianlun", nianlun)
    await nianlun.open()
    try:
        yield nianlun
    finally:
        await nianlun.close()


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize("name", HEADINGS)
async def test_the_examples_run_as_they_stand(name: str) -> None:
    blocks = examples(name)
    assert len(blocks) == 6
    with ModelServer() as server, OpenAI(api_key="sk-test", base_url=server.base_url) as client:
        server.script([completion('[{"content": "他说拿到驾照了，声音里全是高兴。"}]')])
        names: dict[str, Any] = {"client": client}
        for number, block in enumerate(blocks, 1):
            code = compile(block, f"{name} {number}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            done = types.FunctionType(code, names)()
            if inspect.iscoroutine(done):
                await done


def test_the_two_languages_have_the_same_code() -> None:
    def bare(name: str) -> list[str]:
        return [re.sub(r"(?m)^#.*\n|  #.*", "", block) for block in examples(name)]

    assert bare("README.md") == bare("README.en.md")

"""The tour: what a newcomer runs first, in a folder with nothing in it but the bot."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
import os
import re
import signal
import subprocess
import sys
from typing import NamedTuple
import unicodedata

import pytest

from tests.e2e.checks import check_citations, check_cover, check_failure, of_type
from tests.e2e.conftest import BotMaker
from tests.support.bot_process import BotProcess, Row
from tests.support.model_server import ModelServer

DEMO = "data/nonebot_plugin_nianlun/demo"
SAMPLE_MODULE = "plugins/nonebot_plugin_nianlun/demo/sample.py"
CHAPTERS = (
    "一份会生长的记忆",
    "一天是怎么记下来的",
    "一个星期",
    "一个月一个月",
    "一年",
    "记住的事实",
    "被问起的时候",
    "每一句从哪里来",
    "接下来",
)
MARK = re.compile(r"（关键消息：\[([\d,]+)\]）")
QUOTE = re.compile(r"「((?:[^「」『』]|『[^『』]*』)*)」")
SETTINGS = """
NIANLUN__TIMEZONE=America/New_York
NIANLUN__DAY_STARTS_AT=00:00
NIANLUN__ACTIVITY_MESSAGES=5
NIANLUN__CHARACTER=小白
NIANLUN__DATABASE_URL=sqlite://mine.db
NIANLUN__DISABLED_CHATS=["group:20250101"]
NICKNAME=["小黑"]
"""
SHORTENED = """

from itertools import islice

_whole = sample_lines


def sample_lines(seed: int = SEED) -> Iterator[dict[str, Any]]:
    yield from islice(_whole(seed), {count})
"""


class Toured(NamedTuple):
    bot: BotProcess
    done: subprocess.CompletedProcess[str]
    coloured: subprocess.CompletedProcess[str]
    """Of a second tour, at the same time in the same folder, by an owner with settings."""


@pytest.fixture(scope="module")
async def toured(tmp_path_factory: pytest.TempPathFactory) -> Toured:
    """A folder with things of its owner's, and what the tour said there."""
    folder = tmp_path_factory.mktemp("tour") / "bot"
    bot, owners = BotProcess(folder), BotProcess(folder, {"ENVIRONMENT": "owner"})
    folder.joinpath(".env.owner").write_text(SETTINGS, "utf-8")
    folder.joinpath("mine.db").write_bytes(b"not even a database")
    kept = folder / DEMO / "kept.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine", "utf-8")
    done, coloured = await asyncio.gather(
        bot.cli("demo", within=180), owners.cli("demo", "--color", "always", within=180)
    )
    return Toured(bot, done, coloured)


def shorten(bot: BotProcess, count: int) -> BotProcess:
    """Give a bot only the beginning of the sample chat, for what is not about its story."""
    with bot.folder.joinpath(SAMPLE_MODULE).open("a", encoding="utf-8") as file:
        file.write(SHORTENED.format(count=count))
    return bot


@pytest.fixture(scope="module")
async def rows(toured: Toured) -> list[Row]:
    """The export of the chat that the tour left in its own database."""
    bot = toured.bot
    looked_into = BotProcess(
        bot.folder.parent / "look",
        {"NIANLUN__DATABASE_URL": f"sqlite:///{(bot.folder / DEMO / 'nianlun.db').as_posix()}"},
    )
    return await looked_into.export("group:20250101")


def test_every_part_of_the_story_is_told(toured: Toured) -> None:
    done = toured.done
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    titles = re.findall(r"^\d\. (.+)$", done.stdout, re.MULTILINE)
    assert len(titles) == len(CHAPTERS)
    for title, expected in zip(titles, CHAPTERS, strict=True):
        assert expected in title
    assert "枸杞岛" in done.stdout
    assert "\x1b" not in done.stdout
    for step in ("样本聊天", "导入", "整理"):
        assert step in done.stderr
    assert all(columns(line) <= 80 for line in done.stdout.split("\n") if DEMO not in line)


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)


async def test_the_sample_is_long_and_all_of_it_is_remembered(rows: list[Row]) -> None:
    messages = of_type(rows, "message")
    assert len(messages) >= 5000
    months = {row["time"][:7] for row in messages}
    assert len(months) >= 14
    check_cover(rows)
    check_citations(rows)
    assert len(of_type(rows, "day")) > 200
    assert len(of_type(rows, "month")) >= 14
    assert {row["date"] for row in of_type(rows, "year")} >= {"2025"}
    assert {
        row["writer"] for row in rows if row["type"] in ("activity", "day", "month", "year")
    } == {"offline"}


def test_nothing_of_the_owner_is_used_or_touched(toured: Toured) -> None:
    """Two tours at once, one of them with settings: still the same story."""
    bot, done, coloured = toured
    assert coloured.returncode == 0, coloured.stderr
    assert coloured.stdout != done.stdout
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured.stdout) == done.stdout
    assert bot.folder.joinpath("mine.db").read_bytes() == b"not even a database"
    assert {path.name for path in bot.folder.glob("mine*")} == {"mine.db"}
    place = bot.folder / DEMO
    assert not list(place.parent.glob("*.db*"))
    assert {path.name for path in place.iterdir()} == {"sample.jsonl", "nianlun.db", "kept.txt"}
    assert place.joinpath("kept.txt").read_text("utf-8") == "mine"


def test_what_is_shown_is_what_was_said(toured: Toured, rows: list[Row]) -> None:
    """The leaves of the trees are messages, word for word, with who said them."""
    done = toured.done
    flat = re.sub(r"\s+", "", done.stdout)
    roots = flat[flat.index("每一句从哪里来") : flat.index("不只这几句")]
    leaves = re.findall(r"#(\d+)(\d{4}-\d\d-\d\d)(\d\d:\d\d)([^：]+)：「", roots)
    assert len(leaves) >= 3
    messages = {row["seq"]: row for row in of_type(rows, "message")}
    for seq, _, _, _ in leaves:
        message = messages[int(seq)]
        assert not message["withdrawn"]
        assert re.sub(r"\s+", "", message["text"]) in roots
    withdrawn = [row for row in messages.values() if row["withdrawn"]]
    assert withdrawn
    for row in withdrawn:
        assert f"#{row['seq']} " not in done.stdout


# —— every sentence, checked by hand-made means ——


def test_every_quote_and_number_of_every_memory_is_in_a_message_it_cites(rows: list[Row]) -> None:
    messages = {row["seq"]: row for row in of_type(rows, "message")}
    looked_at = quotes = 0
    missing: list[str] = []
    for row in notes_of(rows):
        for text, ids in pieces(row["text"]):
            looked_at += 1
            assert ids or not QUOTE.search(text), text
            heard = [said(messages[number]) for number in ids]
            quotes += len(QUOTE.findall(text))
            missing += [f"{row['type']}: {claim} in {text}" for claim in unheard(text, heard)]
    assert looked_at > 1000
    assert quotes > 1000
    assert missing == []


def notes_of(rows: list[Row]) -> Iterator[Row]:
    return (row for row in rows if row["type"] in ("activity", "day", "month", "year"))


def pieces(text: str) -> Iterator[tuple[str, list[int]]]:
    """What stands between two marks, with the ids of the one behind it."""
    parts = MARK.split(text)
    for index in range(0, len(parts), 2):
        ids = parts[index + 1].split(",") if index + 1 < len(parts) else []
        if any(char.isalnum() for char in parts[index]):
            yield parts[index], [int(number) for number in ids]


def said(message: Row) -> str:
    assert not message["withdrawn"]
    return plain(f"{message['name']}\n{message['text']}")


def plain(text: str) -> str:
    """Quotation marks alike, and blanks: those in which an excerpt may differ."""
    return " ".join(text.translate(dict.fromkeys(map(ord, "「」『』“”"), '"')).split())


def unheard(text: str, heard: list[str]) -> list[str]:
    claims = [
        part for quote in QUOTE.findall(text) for part in plain(quote).split("…") if part.strip()
    ]
    claims += re.findall(r"[0-9]+", QUOTE.sub("", text))
    return [claim for claim in claims if not any(claim.strip() in one for one in heard)]


def test_the_story_counts_as_many_sentences(toured: Toured, rows: list[Row]) -> None:
    done = toured.done
    flat = re.sub(r"\s+", "", done.stdout)
    (sentences, traced) = re.findall(r"一共(\d+)句，(\d+)句一层不断地追到", flat)[0]
    (quotes, verbatim) = re.findall(r"引文有(\d+)处，(\d+)处一字不差", flat)[0]
    assert int(traced) <= int(sentences)
    assert int(sentences) >= sum(len(list(pieces(row["text"]))) for row in notes_of(rows))
    counted = sum(len(QUOTE.findall(MARK.sub("", row["text"]))) for row in notes_of(rows))
    assert int(quotes) == int(verbatim) == counted
    assert "找不到出处的有0处" in flat
    assert f"{len(of_type(rows, 'activity'))}条活动" in flat


# —— with a model ——


async def test_without_a_key_a_model_cannot_be_asked(new_bot: BotMaker) -> None:
    done = await new_bot().cli("demo", "--model")
    assert (done.returncode, done.stdout) == (1, "")
    check_failure(done)
    assert "OPENAI_API_KEY" in done.stderr


async def test_the_cost_is_said_before_anything_is_spent(
    new_bot: BotMaker, model: ModelServer
) -> None:
    bot = shorten(new_bot({"NIANLUN__NOTES_MODEL": "some-model"}, model=model), 500)
    unasked, declined = await asyncio.gather(bot.cli("demo", "--model", within=180), decline(bot))
    assert unasked.stderr.strip().splitlines()[-1].endswith("--yes")
    assert "没有花" in declined.stderr.strip().splitlines()[-1]
    assert "继续吗？[y/N]" in declined.stdout
    for done in (unasked, declined):
        assert done.returncode == 1
        assert "some-model" in done.stdout
        calls, tokens = told_cost(done.stdout)
        assert calls > 30
        assert tokens > 50_000
    assert model.requests == []


def told_cost(output: str) -> tuple[int, int]:
    """Calls and tokens of the input."""
    (calls,) = re.findall(r"一次接一次调用 (\d+) 次", output)
    (tokens,) = re.findall(r"输入约 ([\d,]+) token", output)
    return int(calls), int(tokens.replace(",", ""))


async def decline(bot: BotProcess) -> subprocess.CompletedProcess[str]:
    """Run it on a terminal where somebody answers no; without terminals, not at all."""
    if sys.platform == "win32":
        pytest.skip("no terminals to open")
    ours, theirs = os.openpty()
    try:
        os.write(ours, b"n\n")
        return await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "bot.py", "demo", "--model"],
            cwd=bot.folder,
            env=bot.env,
            stdin=theirs,
            capture_output=True,
            timeout=180,
            check=False,
            encoding="utf-8",
        )
    finally:
        os.close(ours)
        os.close(theirs)


async def test_a_model_writes_the_memory(new_bot: BotMaker, model: ModelServer) -> None:
    bot = shorten(new_bot({"NIANLUN__NOTES_MODEL": "some-model"}, model=model), 2000)
    done = await bot.cli("demo", "--model", "--yes", within=240)
    assert done.returncode == 0, done.stderr
    calls, _ = told_cost(done.stdout)
    assert calls > 100
    assert abs(len(model.requests) - calls) <= calls * 0.05
    assert {request["model"] for request in model.requests} == {"some-model"}
    assert "由模型 some-model 写成" in done.stdout


async def test_a_model_that_fails_ends_the_tour(new_bot: BotMaker, model: ModelServer) -> None:
    model.script(lambda _: (401, {}, '{"error": {"message": "bad key"}}'))
    bot = shorten(new_bot(model=model), 500)
    done = await bot.cli("demo", "--model", "--yes", within=120)
    assert done.returncode == 1
    assert "OPENAI_API_KEY" in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr


# —— trouble ——


async def test_a_broken_setting_is_told_as_everywhere(new_bot: BotMaker) -> None:
    done = await new_bot({"NIANLUN__KEEP_DAYS": "abc"}).cli("demo")
    assert (done.returncode, done.stdout) == (1, "")
    check_failure(done)
    assert "NIANLUN__KEEP_DAYS" in done.stderr


async def test_a_folder_that_cannot_be_used(new_bot: BotMaker) -> None:
    bot = new_bot(fresh=True)
    place = bot.folder / DEMO
    place.parent.mkdir(parents=True)
    place.write_text("a file of somebody's", "utf-8")
    done = await bot.cli("demo")
    assert (done.returncode, done.stdout) == (1, "")
    check_failure(done)
    assert place.read_text("utf-8") == "a file of somebody's"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
async def test_an_interrupted_tour_ends_and_leaves_nothing(new_bot: BotMaker) -> None:
    bot = new_bot()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "bot.py",
        "demo",
        cwd=bot.folder,
        env=bot.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    seen = ""
    while "导入" not in seen:
        line = await asyncio.wait_for(process.stderr.readline(), 60)
        assert line, seen
        seen += line.decode()
    await asyncio.sleep(0.3)
    process.send_signal(signal.SIGINT)
    output, complaints = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, output) == (1, b"")
    assert "停下了" in complaints.decode()
    assert "Traceback" not in complaints.decode()
    assert list(bot.folder.joinpath(DEMO).iterdir()) == []

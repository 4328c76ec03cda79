"""To find: who is here, what somebody said, where something was talked about, what is known."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
import re
from typing import TYPE_CHECKING

from nonebot_plugin_alconna import Args, MultiVar

from ..errors import ChatError
from ..memory.periods import read_time
from ..memory.query import wording
from ..memory.render import display_names, one_line
from ..memory.search import RecallResult
from ..memory.terms import fold
from ..recalling import RecallQuery
from ..store import facts, said, speakers
from ..types import ME
from .command import Answer, Asked, Command, WrongUsage
from .drawing import speakers_picture
from .finding_views import (
    PAGE_LINES,
    People,
    categories_view,
    fact_view,
    facts_view,
    found_view,
    is_written,
    originals_view,
    people_view,
    said_view,
)
from .subjects import find_person, read_category, read_message
from .typed import as_typed, says_something, unquoted
from .views import echo

if TYPE_CHECKING:
    from ..lifecycle import Nianlun
    from ..store.models import Fact

_MOST_PEOPLE = 30
_MOST_ORIGINALS = 20
_SEARCH_LINES, _SEARCH_TOKENS = 15, 3000
_WRITTEN_LINES = 8
_WIDE = str.maketrans("@#", "＠＃")
_NARROW = str.maketrans("＠＃", "@#")
_NUMBER = re.compile(r"[#＃]?([0-9]{1,18})")


def _as_typed(asked: Asked, word: str) -> str:
    """A word with its quotation marks: they may be of a name."""
    return as_typed(word, asked.event.get_plaintext())


def _to_find(asked: Asked, word: str) -> str:
    """A word as it is searched for: a quoted 今天 is the word, not the day, and so is a tag."""
    as_it_stands = _as_typed(asked, word) != word or word.startswith(("#", "＃"))
    return f'"{word}"' if as_it_stands else word


def _in_both_widths(word: str) -> list[str]:
    """A word as it was typed, and with its @ and # as other keyboards type them."""
    return list(dict.fromkeys([word, word.translate(_NARROW), word.translate(_WIDE)]))


class Finding:
    """Finds in what one chat remembers."""

    def __init__(self, nianlun: Nianlun) -> None:
        self._nianlun = nianlun

    def commands(self) -> tuple[Command, ...]:
        return (
            Command("谁", "read", "谁说过话，各有多少", self._people),
            Command(
                "说过",
                "read",
                "一个人说过的话，从最近的看起",
                self._said,
                (Args["名字", str]["页;?", int],),
                example="小鹿 2",
                usage="名字 [页]",
                names_person=True,
            ),
            Command(
                "搜索",
                "read",
                "找聊过的事、记下的事和词条",
                self._search,
                (Args["词", str]["说话人;?", str]["时间;?", str],),
                example="爬山 小鹿 上个月",
                usage="词 [说话人] [时间]",
                names_person=True,
            ),
            Command(
                "原文",
                "read",
                "消息的原话；只问一条时，回答引用它",
                self._originals,
                (Args["编号", MultiVar(str)],),
                example="#12 #15",
                usage="#12 …",
            ),
            Command(
                "词条",
                "govern",
                "知道的事：全部分类、一个分类，或一条和它从前的样子",
                self._facts,
                (Args["分类;?", MultiVar(str)],),
                example="preferences:咖啡",
                usage="[分类[:名]]",
            ),
        )

    async def _names(self, chat_id: int, user_ids: set[str]) -> People:
        """How these people are shown; the bot by the name it goes by."""
        names = await speakers.current_names(chat_id, user_ids - {ME})
        return {**display_names(names), ME: self._nianlun.character}

    async def _people(self, asked: Asked) -> Answer:
        chat_id = await self._nianlun.settled(asked.chat)
        people = await said.heard(self._nianlun.path, chat_id)
        if not people:
            return Answer("还没有谁说过话。")
        shown = people[:_MOST_PEOPLE]
        names = await self._names(chat_id, {one.user_id for one in shown})
        picture = await speakers_picture([one.messages for one in people])
        text = people_view(shown, names, len(people), self._nianlun.calendar)
        return Answer(text, "谁说过话", picture=picture)

    async def _said(self, asked: Asked) -> Answer:
        chat_id = await self._nianlun.settled(asked.chat)
        page = asked.arguments.get("页", 1)
        if not 1 <= page <= 100_000:
            raise WrongUsage("页数从 1 开始。")
        character = self._nianlun.character
        typed = _as_typed(asked, asked.arguments["名字"])
        user_id = await find_person(chat_id, typed, asked.here.self_id, character)
        skip = (page - 1) * PAGE_LINES
        lines = await said.lines_of(self._nianlun.path, chat_id, user_id, skip, PAGE_LINES + 1)
        if not lines:
            return Answer("这一页没有了。" if page > 1 else "这里没有这个人说过的话。")
        name = (await self._names(chat_id, {user_id})).get(user_id, user_id)
        text = said_view(lines[:PAGE_LINES], self._nianlun.calendar)
        if len(lines) > PAGE_LINES:
            typed = character if user_id == ME else one_line(typed)
            if " " in typed and unquoted(typed) == typed:
                typed = f'"{typed}"'
            text += f"\n再往前：{asked.head} 说过 {typed} {page + 1}"
        return Answer(text, f"{name}说过的话，第 {page} 页")

    async def _search(self, asked: Asked) -> Answer:
        chat_id = await self._nianlun.settled(asked.chat)
        speaker, within = await self._narrowed(asked, chat_id)
        word = await self._word(asked, chat_id)
        typed = _to_find(asked, word)
        wanted = wording(typed, self._nianlun.clock.now(), self._nianlun.calendar)
        query = RecallQuery(
            typed,
            limit=_SEARCH_LINES,
            budget_tokens=_SEARCH_TOKENS,
            speaker=speaker,
            time_range=within,
            asker=asked.user_id,
            linked=True,
            around=0,
            words_only=True,
        )
        # The index has no @ in it, nor parts of words: that something is written nowhere is not
        # said before the lines themselves were looked through.
        named = word == self._nianlun.character or await speakers.bearers(chat_id, [word])
        unindexed = wanted and (named or re.search("[@#]", fold(word)))
        recalling = self._nianlun.recalling
        found = RecallResult() if unindexed else await recalling.recall(chat_id, query)
        if wanted and not is_written(found, wanted):
            written = await self._written(chat_id, word, speaker, within)
            found = await recalling.recall(chat_id, replace(query, written=written))
        return Answer(found_view(found, wanted), "找到这些" if found.items else "")

    async def _word(self, asked: Asked, chat_id: int) -> str:
        """What is searched for; of an @ the name, as it stands in messages."""
        word = asked.arguments["词"]
        number = word[1:]
        if word[0] not in "@＠" or not number.isdecimal():
            return word
        user_id = ME if number == asked.here.self_id else number
        return (await self._names(chat_id, {user_id})).get(user_id, word)

    async def _written(
        self,
        chat_id: int,
        word: str,
        speaker: str | None,
        within: tuple[datetime, datetime] | None,
    ) -> dict[int, list[int]]:
        """The messages in which a word stands as it was typed, by chat; first, the one whose
        number it is."""
        linked = await self._nianlun.recalling.reader.linked(chat_id)
        found: dict[int, list[int]] = {}
        for one in (chat_id, *(other.chat_id for other in linked)):
            found[one] = await said.written(
                self._nianlun.path, one, _in_both_widths(word), _WRITTEN_LINES, speaker, within
            )
        number = read_message(word)
        if number is not None and speaker is None and within is None:
            found[chat_id].insert(0, number)
        return found

    async def _narrowed(
        self, asked: Asked, chat_id: int
    ) -> tuple[str | None, tuple[datetime, datetime] | None]:
        """Whose words and of what time are asked for; a word that is a time is one."""
        calendar, now = self._nianlun.calendar, self._nianlun.clock.now()
        speaker = within = None
        for name in ("说话人", "时间"):
            if (word := asked.arguments.get(name)) is None:
                continue
            if within is None and (time := read_time(word, calendar, now)) is not None:
                within = (time.earliest, time.end)
            elif speaker is None:
                speaker = await find_person(
                    chat_id,
                    _as_typed(asked, word),
                    asked.here.self_id,
                    self._nianlun.character,
                )
            elif word != f"@{asked.here.self_id}":  # behind all that was asked it is an address
                raise WrongUsage("没看懂要找哪段时间。")
        return speaker, within

    async def _originals(self, asked: Asked) -> Answer:
        numbers = [_NUMBER.fullmatch(word) for word in asked.arguments["编号"]]
        if not all(numbers) or len(numbers) > _MOST_ORIGINALS:
            raise WrongUsage(f"编号写成 #12，一次最多 {_MOST_ORIGINALS} 条。")
        seqs = list(dict.fromkeys(int(number[1]) for number in numbers if number))
        chat_id = await self._nianlun.settled(asked.chat)
        found = await said.originals(chat_id, seqs)
        names = await self._names(chat_id, {one.message.user_id for one in found.values()})
        text = originals_view(seqs, found, names, self._nianlun.calendar)
        one = found.get(seqs[0])
        quotes = one.message_id if one and len(seqs) == 1 and not one.message.withdrawn else None
        return Answer(text, quotes=quotes)

    async def _facts(self, asked: Asked) -> Answer:
        chat_id = await self._nianlun.settled(asked.chat)
        typed = " ".join(asked.arguments.get("分类", ())).replace("：", ":")
        if not typed:
            return Answer(categories_view(await facts.listed(chat_id)))
        category, colon, name = (part.strip() for part in typed.partition(":"))
        if not says_something(category.strip("@#&")) or (colon and not name):
            raise WrongUsage("写一个分类，或者 分类:名。")
        category = read_category(category)
        rows = await facts.listed(chat_id, category=category)
        if colon:
            rows = [row for row in rows if row.name == name]
        if not rows:
            raise ChatError(f"没有 {echo(typed, 60)} 这{'个' if colon else '一类的'}词条")
        owners = await self._names(chat_id, {row.owner for row in rows if row.owner})
        if not colon:
            return Answer(facts_view(rows, owners), f"词条：{one_line(category)}")
        return Answer("\n\n".join([await self._fact(row, owners) for row in rows]))

    async def _fact(self, row: Fact, owners: People) -> str:
        journal = await facts.journal(row.id)
        writers = {one.writer for one in (row, *journal) if one.writer is not None}
        people = {**await self._names(row.chat_id, writers), **owners}
        return fact_view(row, journal, people, self._nianlun.calendar)

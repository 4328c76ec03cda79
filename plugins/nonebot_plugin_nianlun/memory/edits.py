"""Texts that a person wrote in place of the writer: how they are typed, and that they stay.

Nothing rewrites such a text but somebody who asks for it: later sources are added to it, each once.
When a source that it holds is corrected, or written anew since something was added to it, what is
added is only what the source says now and did not say then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import groupby, islice
import re
from typing import TypeVar

from ..errors import NoteRejected
from ..types import Activity, Memory, NoteKind, RollupTask, is_edited
from .evidence import quoted_spans
from .keymarks import find_key_messages, key_mark, normalise_key_marks
from .notes import check_note
from .provenance import Sentence, sentences

NOT_BROUGHT = "导入的文件里没有它的文字"
"""Of an earlier version that is not on record: one that is emptied here is."""

_Source = TypeVar("_Source", bound=Activity | Memory)

_B = r"[ \t\u3000]*+"
_TYPED = re.compile(
    rf"[（(]{_B}[#＃][0-9０-９]{{1,18}}(?:{_B}[,，、]?{_B}[#＃][0-9０-９]{{1,18}})*+{_B}[)）]"
)
_NUMBER = re.compile(r"[0-9０-９]+")
_NAMED = 5


def typed_key_marks(text: str) -> str:
    """`text` with references as they are shown to people, `（#1 #3）`, in canonical form."""

    def canonical(found: re.Match[str]) -> str:
        return key_mark([int(number) for number in _NUMBER.findall(found[0])])

    return normalise_key_marks(_TYPED.sub(canonical, text))


def checked_edit(
    kind: NoteKind, typed: str, citable: Collection[int], units: int | None = None
) -> tuple[str, tuple[int, ...]]:
    """What a person typed as it is stored, and the messages that it cites.

    The writing rules hold for people too; `units` is the limit where it is not the kind's. Raises
    NoteRejected with the first that is broken.
    """
    text = typed_key_marks(typed)
    wrong = [f"#{number}" for number in find_key_messages(text) if number not in citable]
    if wrong:
        more = f" 等 {len(wrong)} 条" if wrong[_NAMED:] else ""
        raise NoteRejected(
            f"这里不能引用 {' '.join(wrong[:_NAMED])}{more}：只能引用写成它的、没有收回的消息。"
        )
    return check_note(kind, text, citable, units)


def edit_of(task: RollupTask) -> str:
    """The words of a person that the task's new text must hold; empty where there are none."""
    if task.rebuild or task.target is None or not task.target.edited:
        return ""
    return task.target.text.strip()


def keeps_edit(task: RollupTask, text: str) -> bool:
    """Whether a new text of the target holds all that a person wrote, as they wrote it."""
    return edit_of(task) in text


def brought_back(text: str, writer: str, earlier: Iterable[tuple[int, str]]) -> int | None:
    """The first version that a text of a person's repeats word for word; None where it is new.

    `earlier`: the versions before it with their texts, oldest first. How the text came to stand
    there again is not on record, and does not matter: an edit that is no change is refused, so
    whoever did it went back.
    """
    if not text or not is_edited(writer):
        return None
    return next((version for version, old in earlier if old == text), None)


def news(source: _Source, held: Collection[str], target: str) -> _Source | None:
    """A source with what in it is new to a person's text that holds it; None when nothing is.

    `held`: what the source said when it was added to `target`. Of a source that a person wrote all
    other sentences are new. A writer only says otherwise what it said before, so of its sentences
    those are that cite a message that was not cited then, or none. The same words of other
    messages are said once more, and new. What is new cites what it cites in the source, or less
    where one mark of it can be shared out to what each sentence quotes.
    """
    said = [part for text in held for part in sentences(text)]
    written = sentences(target)
    cited = {key for text in held for key in find_key_messages(text)}
    retold = not is_edited(source.writer)
    new = ""
    parts = sentences(source.text, source.key_messages)
    for keys, group in groupby(parts, key=lambda part: part.key_messages):
        fresh: list[Sentence] = []
        for part in _shared_out(list(group), keys):
            again = retold and keys and cited.issuperset(part.key_messages or keys)
            words, cites = _words(part.text), part.key_messages or keys
            there = [old for old in written if words in old.text]
            # Of what runs over several sentences there it is not known what they cite.
            stands = words in target and (not there or _is_of(there, cites))
            before = [old for old in said if _words(old.text) == words]
            if words and not (again or stands or _is_of(before, cites)):
                fresh.append(part)
        new += "".join(f"{part.text}{key_mark(part.key_messages or keys)}" for part in _led(fresh))
    text = new.strip()
    return replace(source, text=text, key_messages=find_key_messages(text)) if text else None


def _is_of(same: Iterable[Sentence], cites: Collection[int]) -> bool:
    """Whether one of the sentences, which have the same words, may rest on these messages too."""
    return any(
        not (old.key_messages and cites) or not set(cites).isdisjoint(old.key_messages)
        for old in same
    )


def _shared_out(group: list[Sentence], keys: tuple[int, ...]) -> list[Sentence]:
    """The sentences of one mark, each with the message that it quotes where there is one for each
    quote; those without a quote with none."""
    quotes = [len(quoted_spans(part.text)) for part in group]
    if sum(quotes) != len(keys):
        return group
    left = iter(keys)
    return [
        replace(part, key_messages=tuple(islice(left, count)))
        for part, count in zip(group, quotes, strict=True)
    ]


def _led(parts: Iterable[Sentence]) -> list[Sentence]:
    """Sentences of one mark put together as one mark can stand behind them."""
    told: list[Sentence] = []
    for part in parts:
        last = told[-1] if told else None
        if last and (last.key_messages == part.key_messages or not last.key_messages):
            told[-1] = replace(part, text=last.text + part.text)
        elif last and not part.key_messages:
            told[-1] = replace(last, text=last.text + part.text)
        else:
            told.append(part)
    return told


def _words(sentence: str) -> str:
    """Without what ends it, which differs by where it stands."""
    return sentence.strip().rstrip("。！？!?；")

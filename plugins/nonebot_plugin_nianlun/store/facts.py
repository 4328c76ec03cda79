"""Facts: what is true now, each with the texts it had before."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Literal, TypeAlias, cast

from tortoise.queryset import QuerySet

from ..errors import NotRecorded
from ..memory.duplicates import same_key
from ..memory.fact_items import LONGEST_TURN, FactItem
from ..memory.links import parse_links, resolve
from ..memory.promises import due_after, is_kept
from ..memory.search import Candidate
from ..types import Fact
from . import exclusions, removals, search, sql, traces
from .database import transactional
from .keys import LONGEST_WRITER, MOMENT, chunks, short_id
from .models import Exclusion, FactVersion
from .models import Fact as FactRow
from .models import Message as MessageRow

_LAST = (1 << 63) - 1
_CATEGORY, _NAME = 80, 128
"""Widths of the columns: what is longer, and may well be asked for, is no fact's."""
_KEPT = ("text", "source", "written_at", "writer", "due", "done_at")
"""What the journal holds of a text, and what comes back with it."""
_NO_TIME = datetime.min.replace(tzinfo=UTC)

Change: TypeAlias = Literal["added", "updated", "same"]


async def store(chat_id: int, facts: Sequence[Fact], now: datetime) -> None:
    """Add or update facts; runs inside the caller's transaction.

    The owner is whoever sent the message that the fact names as its source. A source that
    is no message of this chat, was withdrawn, or is excluded, makes no fact; nor does one that was
    sent before somebody had the fact erased.
    """
    excluded = await exclusions.known_for([chat_id]) if facts else {}
    for fact in facts:
        source = await MessageRow.get_or_none(chat_id=chat_id, seq=fact.source, withdrawn_at=None)
        if source is None or exclusions.covers(excluded, chat_id, source.user_id, source.time):
            continue
        erased = await removals.fact_ends(chat_id, source.user_id, fact.category, fact.name)
        if erased is not None and source.time < erased:
            continue
        item = FactItem(fact.category, fact.name, fact.content, fact.due, fact.done)
        await _put(chat_id, source.user_id, item, fact.source, now)


@transactional
async def remember(
    chat_id: int,
    owner: str,
    items: Sequence[FactItem],
    source: int | None,
    now: datetime,
    read: traces.Reading | None = None,
) -> list[Change]:
    """Add or update facts of one owner: a user id, `me`, or empty for the chat itself.

    Returns what became of each. Raises NotRecorded when the owner may not be recorded, or when
    `source` is given and is no message of this chat that still stands; and Overtaken when
    something was erased since the chat was `read`.
    """
    await sql.move_last_seqs({chat_id: 0})
    await traces.check(chat_id, read)
    owner = short_id(owner)
    await exclusions.refuse(chat_id, owner, now)
    stands = MessageRow.filter(chat_id=chat_id, seq=source, withdrawn_at=None)
    if source is not None and not await stands.exists():
        raise NotRecorded(f"没有 #{source} 这条消息，或者它已经撤回")
    return [await _put(chat_id, owner, item, source, now) for item in items]


async def _put(
    chat_id: int, owner: str, item: FactItem, source: int | None, now: datetime
) -> Change:
    """Write a fact; the text that it had goes into its journal."""
    where = {"chat_id": chat_id, "owner": owner, "category": item.category, "name": item.name}
    row = await FactRow.get_or_none(**where)
    new = {"text": item.content, "due": due_after(item, row.due if row else None)}
    done_at = now if is_kept(item) else None
    if row is None:
        row = await FactRow.create(
            **where, **new, done_at=done_at, source=source, created_at=now, written_at=now
        )
        await search.add(chat_id, "fact", [row.id])
        return "added"
    is_done = (row.done_at is not None) == (done_at is not None)
    if (row.text, row.due) == (new["text"], new["due"]) and is_done:
        return "same"
    await keep_version(row)
    said = {"source": source, "writer": None, "written_at": now}
    await FactRow.filter(id=row.id).update(**new, **said, done_at=done_at)
    await search.add(chat_id, "fact", [row.id])
    return "updated" if row.text else "added"


async def keep_version(row: FactRow) -> None:
    """Put what a fact says into its journal, before another text takes its place.

    Runs inside the caller's transaction.
    """
    kept = {key: getattr(row, key) for key in _KEPT}
    await FactVersion.create(chat_id=row.chat_id, fact_id=row.id, **kept)


@transactional
async def remove(chat_id: int, owner: str, category: str, name: str, now: datetime) -> bool:
    """Take a fact away; its text stays in the journal. False when there is none.

    The row stays, without a text: it is what the journal hangs on, and is erased with it.
    """
    await sql.move_last_seqs({chat_id: 0})
    row = await _current(chat_id).get_or_none(owner=short_id(owner), category=category, name=name)
    if row is None:
        return False
    await keep_version(row)
    await FactRow.filter(id=row.id).update(
        text="", source=None, due=None, done_at=None, writer=None, written_at=now
    )
    return True


@transactional
async def erase(
    chat_id: int, owner: str, category: str, name: str, at: datetime, now: datetime
) -> bool:
    """Take a fact away with all that it ever said. False when there is none.

    What was said until `at` does not establish it again, be it noted once more, imported or
    brought back from a copy of the database; what is said later does, and so does `remember`.
    """
    await sql.move_last_seqs({chat_id: 0})
    row = await _current(chat_id).get_or_none(owner=short_id(owner), category=category, name=name)
    if row is None:
        return False
    await removals.note_fact(row, at, now)
    await _erase(row)
    return True


async def _erase(row: FactRow) -> None:
    await FactVersion.filter(chat_id=row.chat_id, fact_id=row.id).delete()
    await FactRow.filter(id=row.id).delete()
    await traces.owe(row.chat_id)


async def erase_again(
    removal: Exclusion, told: Collection[tuple[str, str, str | None, str, datetime]] = ()
) -> int:
    """Erase what is here of a fact from before somebody had it erased; how many facts that were.

    What is `told` (owner, category, name, text and its time) stays. Runs inside the caller's
    transaction.
    """
    erased = 0
    for row in await FactRow.filter(chat_id=removal.chat_id, owner=removal.user_id or ""):
        if removals.subject_of(row.category, row.name) != removal.subject or removal.ends is None:
            continue
        whose = row.owner, row.category, row.name
        stays = (*whose, row.text, row.written_at) in told
        if not stays and await removals.told_at(row.chat_id, row) < removal.ends:
            await _erase(row)
            erased += 1
            continue
        for old in await FactVersion.filter(chat_id=removal.chat_id, fact_id=row.id):
            stays = (*whose, old.text, old.written_at) in told
            if not stays and await removals.told_at(row.chat_id, old) < removal.ends:
                await FactVersion.filter(id=old.id).delete()
                await traces.owe(removal.chat_id)
    return erased


def _current(chat_id: int) -> QuerySet[FactRow]:
    """Facts that hold now, without notes."""
    return FactRow.filter(chat_id=chat_id, name__isnull=False).exclude(text="")


async def find(chat_id: int, owner: str, category: str, name: str) -> FactRow | None:
    return await _current(chat_id).get_or_none(owner=short_id(owner), category=category, name=name)


async def named(chat_id: int, category: str, name: str) -> list[FactRow]:
    """The facts of that name, one of each owner who has one: the chat's own first."""
    if len(category) > _CATEGORY or len(name) > _NAME:
        return []
    return await _current(chat_id).filter(category=category, name=name).order_by("owner")


async def unresolved_links(chat_id: int, owner: str, item: FactItem) -> tuple[str, ...]:
    """`category:name` of each link in a fact's text that leads to no one fact."""
    links = parse_links(item.content)
    bearers = [row for link in links for row in await named(chat_id, link.category, link.name)]
    ours = _candidate(-1, short_id(owner), item.category, item.name, item.content)
    theirs = [_candidate(row.id, row.owner, row.category, row.name, row.text) for row in bearers]
    return resolve([ours], theirs).unresolved


def _candidate(ref: int, owner: str, category: str, name: str | None, text: str) -> Candidate:
    return Candidate("fact", ref, 0.0, _NO_TIME, text, owner or None, name, category)


async def listed(
    chat_id: int, *, owner: str | None = None, category: str | None = None
) -> list[FactRow]:
    """Facts that hold now, in order of category and name; all, or of one owner or category."""
    query = _current(chat_id)
    if owner is not None:
        query = query.filter(owner=short_id(owner))
    if category is not None:
        if len(category) > _CATEGORY:
            return []
        query = query.filter(category=category)
    return await query.order_by("category", "name", "owner")


async def journal(fact_id: int) -> list[FactVersion]:
    """The texts that a fact had before, oldest first; an empty one is from when it was removed."""
    return await FactVersion.filter(fact_id=fact_id).order_by("id")


async def take_back(chat_id: int, seqs: Sequence[int]) -> int:
    """Remove what facts took from messages that were withdrawn; an earlier text comes back.

    Returns how many facts that changed. Runs inside the caller's transaction.
    """
    changed = erased = 0
    for part in chunks(seqs):
        erased += await FactVersion.filter(chat_id=chat_id, source__in=part).delete()
    for part in chunks(seqs):
        rows = await FactRow.filter(chat_id=chat_id, source__in=part).only("id")
        await _go_back(chat_id, [row.id for row in rows])
        changed += len(rows)
    if changed or erased:
        await _drop_husks(chat_id)
    return changed


async def take_back_around(chat_id: int, seqs: Sequence[int]) -> int:
    """Remove what facts took from lines beside these that no window covers yet.

    A fact of a turn may tell the words of another line of it. Of lines in a window that is seen
    to by `take_back_noted`. Runs inside the caller's transaction.
    """
    if not seqs:
        return 0
    sources = await _sources(chat_id, min(seqs) - LONGEST_TURN, max(seqs) + LONGEST_TURN)
    near = {s for seq in seqs for s in range(seq - LONGEST_TURN + 1, seq + LONGEST_TURN)}
    unnoted: list[int] = []
    for part in chunks(sorted(sources & near)):
        rows = MessageRow.filter(chat_id=chat_id, seq__in=part, activity_id=None)
        # A command tells its own fact alone.
        unnoted += [
            row.seq for row in await rows.only("seq", "skipped") if row.skipped != "command"
        ]
    return await take_back(chat_id, unnoted)


async def _sources(chat_id: int, first: int, last: int) -> set[int]:
    """The messages from `first` to `last` that a fact, or an earlier text of one, is from."""
    where = {"chat_id": chat_id, "source__gte": first, "source__lte": last}
    now = await FactRow.filter(**where).values_list("source", flat=True)
    before = await FactVersion.filter(**where).values_list("source", flat=True)
    return {*cast("list[int]", now), *cast("list[int]", before)}


async def _drop_husks(chat_id: int) -> None:
    """Drop facts that were removed, and of which no earlier text is left either."""
    empty = FactRow.filter(chat_id=chat_id, text="").only("id")
    ids = [row.id for row in await empty]
    for part in chunks(ids):
        kept = FactVersion.filter(chat_id=chat_id, fact_id__in=part).exclude(text="")
        held = {row.fact_id for row in await kept.only("fact_id")}
        gone = [one for one in part if one not in held]
        await FactVersion.filter(chat_id=chat_id, fact_id__in=gone).delete()
        await FactRow.filter(id__in=gone).delete()


async def take_back_noted(chat_id: int, activity_ids: Sequence[int]) -> None:
    """Remove what facts took from any message of these windows.

    Runs inside the caller's transaction.
    """
    for part in chunks(activity_ids):
        await take_back(chat_id, await sql.sources_within(chat_id, part))


async def _go_back(chat_id: int, fact_ids: Sequence[int]) -> None:
    for part in chunks(fact_ids):
        earlier = FactVersion.filter(chat_id=chat_id, fact_id__in=part)
        before = {version.fact_id: version for version in await earlier.order_by("id")}
        await FactRow.filter(id__in=[one for one in part if one not in before]).delete()
        for fact_id, old in before.items():
            await FactRow.filter(id=fact_id).update(**{key: getattr(old, key) for key in _KEPT})
        await FactVersion.filter(id__in=[version.id for version in before.values()]).delete()
        await search.add(chat_id, "fact", list(before))


async def forget(chat_id: int, user_ids: Sequence[str]) -> int:
    """Remove all facts about these speakers, and what others' facts took from what they said.

    Returns how many facts are gone or have gone back. Runs inside the caller's transaction.
    """
    own = [row.id for row in await FactRow.filter(chat_id=chat_id, owner__in=user_ids).only("id")]
    for part in chunks(own):
        await FactVersion.filter(chat_id=chat_id, fact_id__in=part).delete()
        await FactRow.filter(id__in=part).delete()
    edited = await _take_out_edits(chat_id, [one for one in user_ids if len(one) <= LONGEST_WRITER])
    unnoted = MessageRow.filter(chat_id=chat_id, user_id__in=user_ids, activity_id=None)
    around = [row.seq for row in await unnoted.filter(skipped=None).only("seq")]
    said: list[int] = []
    for part in chunks(sorted(await _sources(chat_id, 0, _LAST))):
        rows = MessageRow.filter(chat_id=chat_id, seq__in=part, user_id__in=user_ids)
        said += [row.seq for row in await rows.only("seq")]
    changed = await take_back(chat_id, said)
    return len(own) + edited + changed + await take_back_around(chat_id, around)


async def _take_out_edits(chat_id: int, writers: Sequence[str]) -> int:
    """Put in the place of what these wrote by hand what was true before; of how many facts that
    are so now.

    It bears a time of its own, so that the same edit of an older vault is not one of it.
    """
    theirs = {"chat_id": chat_id, "writer__in": writers}
    rows = {row.id for row in await FactRow.filter(**theirs).only("id")}
    before = {old.fact_id for old in await FactVersion.filter(**theirs).only("fact_id")}
    for fact_id in sorted(rows | before):
        texts = [*await journal(fact_id), await FactRow.get(id=fact_id)]
        kept: FactRow | FactVersion | None = None
        for text, later in zip(texts, [*texts[1:], None], strict=True):
            if text.writer not in writers:
                kept = text
            elif kept is None or (later is not None and later.writer in writers):
                await text.delete()
            else:
                values = {key: getattr(kept, key) for key in _KEPT}
                text.update_from_dict(values | {"written_at": kept.written_at + MOMENT})
                if isinstance(text, FactRow) and text.name is None:
                    text.note_key = same_key(text.text)
                await text.save()
                kept = text
    await search.add(chat_id, "fact", sorted(rows))
    return len(rows)


async def everything(chat_id: int) -> list[tuple[FactRow, list[FactVersion]]]:
    """All facts of a chat with their earlier texts, oldest first."""
    rows = await FactRow.filter(chat_id=chat_id).order_by("owner", "category", "name", "id")
    earlier: dict[int, list[FactVersion]] = {}
    for version in await FactVersion.filter(chat_id=chat_id).order_by("id"):
        earlier.setdefault(version.fact_id, []).append(version)
    return [(row, earlier.get(row.id, [])) for row in rows]


async def categories(chat_id: int) -> list[str]:
    """The categories in use."""
    rows = await _current(chat_id).distinct().order_by("category").values("category")
    return [row["category"] for row in rows]

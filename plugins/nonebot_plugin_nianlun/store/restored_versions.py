"""Earlier texts of notes of an export, beside those that are here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
import json

from ..memory.keymarks import find_key_messages
from ..types import NoteKind
from .models import Activity as ActivityRow
from .models import Memory as MemoryRow
from .models import NoteVersion
from .numbers import Numbers
from .records import Version


class EarlierTexts:
    """Those of one chat of a file; its methods run inside the caller's transaction."""

    def __init__(
        self,
        chat_id: int,
        seqs: Numbers,
        activities: Mapping[int, tuple[int, str]],
        periods: Collection[str],
        kept: Callable[[str, Version], str],
    ) -> None:
        """`activities` have by their number in the file the number here, and `periods` are there
        of the file, as far as it is stored by now; `kept` is a text as it may be kept, and empty
        where it may not."""
        self._chat_id = chat_id
        self._seqs = seqs
        self._activities = activities
        self._periods = periods
        self._kept = kept

    async def restore(
        self,
        kind: NoteKind,
        ref: str,
        versions: Sequence[Version],
        sources: Sequence[str],
        *,
        tainted: bool,
    ) -> None:
        """The earlier texts of a note that is new here; `sources` are those of its text."""
        # Of a note that is not here any more there may be blank ones.
        await NoteVersion.filter(chat_id=self._chat_id, kind=kind, ref=ref).delete()
        texts = ["" if tainted else self._kept(kind, old) for old in versions]
        await NoteVersion.bulk_create(
            self._version(kind, ref, old.version, text, old, sources)
            for text, old in zip(texts, versions, strict=True)
        )

    def _version(
        self, kind: str, ref: str, number: int, text: str, old: Version, sources: Sequence[str]
    ) -> NoteVersion:
        """An earlier text; should one of its sources be withdrawn, it is found by them."""
        keys = None if old.key_messages is None else self._seqs.all(old.key_messages)
        if old.sources is not None:
            sources = self._earlier_sources(kind, old.sources)
        told = old.blanked is not None and bool(text) == bool(old.text)
        return NoteVersion(
            chat_id=self._chat_id,
            kind=kind,
            ref=ref,
            version=number,
            text=text,
            key_messages=json.dumps(find_key_messages(text) if keys is None or not text else keys),
            sources=json.dumps(list(sources)),
            writer=old.writer,
            written_at=old.written_at,
            usage=old.usage,
            blanked=old.blanked if told else not text,
            merged=old.merged,
        )

    def _earlier_sources(self, kind: str, theirs: Sequence[str]) -> list[str]:
        if kind != "day":
            return [ref for ref in theirs if ref in self._periods]
        known = (self._activities.get(int(ref)) for ref in theirs)
        return list(dict.fromkeys(str(one[0]) for one in known if one is not None))

    async def keep(
        self,
        kind: str,
        ref: str,
        row: ActivityRow | MemoryRow,
        texts: Iterable[Version],
        sources: Sequence[str],
    ) -> int:
        """Keep the file's texts that are not here as earlier ones; returns how many."""
        earlier = await NoteVersion.filter(chat_id=self._chat_id, kind=kind, ref=ref)
        known = {(old.text, old.writer, old.written_at) for old in earlier}
        known.add((row.text, row.writer, row.written_at))
        blanked = any(old.blanked for old in earlier)
        number = row.version
        for old in texts:
            text = self._kept(kind, old)
            if not text or blanked or (text, old.writer, old.written_at) in known:
                continue
            # The memory above holds what is here, not what the file adds.
            beside = replace(old, merged=False)
            await self._version(kind, ref, number, text, beside, sources).save()
            number += 1
        return number - row.version

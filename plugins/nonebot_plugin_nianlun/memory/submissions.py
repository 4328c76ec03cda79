"""Submissions judged by the protocol and the writing rules together: a finished note, or a
sentence that tells the model what to change.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..errors import NoteRejected
from ..types import UNIT_LIMITS, Note, NoteKind, RollupTask
from .edits import edit_of, keeps_edit
from .keymarks import find_key_messages, normalise_key_marks, strip_key_marks
from .notes import check_note
from .relative_days import settled
from .secrets import mask_secrets
from .tasks import Declined, ids_shown, parse_activity, parse_memories
from .units import count_units, cut_to_units

T = TypeVar("T")

TRIES = 3
"""So often a submission may be too long; the last one is cut."""
_CLOSING = "」』”’）)\"'` "
_ENDS = "。！？!?；;…~～."
_MARKS = f"{_ENDS}，,、：:"
"""What begins with one of these goes on with the sentence before it."""
CUT_MARK = "……"
"""Ends a text that never fitted and was cut."""


class TooLong(NoteRejected, Generic[T]):
    """The only trouble is the length; `shortened` is what a cut makes of it."""

    def __init__(self, message: str, shortened: T) -> None:
        super().__init__(message)
        self.shortened = shortened


@dataclass(frozen=True, slots=True)
class ActivitySubmitted:
    """What was handed in for a window: no note when it was declined."""

    note: Note | None
    dropped: tuple[str, ...] = ()
    """Why each fact that was left out was left out."""


def read_activity(answer: object, shown: Collection[int], day: str) -> ActivitySubmitted:
    """Raises NoteRejected; TooLong[ActivitySubmitted] when a cut would do."""
    submission = parse_activity(answer, shown)
    if isinstance(submission, Declined):
        return ActivitySubmitted(None)
    memory = settled(submission.memory, "activity", day)
    text, keys, complaint = _check("activity", memory, shown)
    note = Note(text, keys, "model", submission.facts)
    submitted = ActivitySubmitted(note, submission.dropped)
    if complaint:
        raise TooLong(complaint, submitted)
    return submitted


def read_memories(answer: object, tasks: Sequence[RollupTask]) -> list[Note]:
    """One note a task. Raises NoteRejected; TooLong[list[Note]] when cuts would do."""
    notes: list[Note] = []
    complaints: list[str] = []
    for number, (task, memory) in enumerate(
        zip(tasks, parse_memories(answer, tasks), strict=True), 1
    ):
        try:
            text, keys, complaint = _check_memory(task, memory)
        except NoteRejected as error:
            raise NoteRejected(f"task_id {number}：{error}") from None
        notes.append(Note(text, keys, "model"))
        if complaint:
            complaints.append(f"task_id {number}：{complaint}")
    if complaints:
        raise TooLong("；".join(complaints), notes)
    return notes


def _check_memory(task: RollupTask, memory: str) -> tuple[str, tuple[int, ...], str]:
    """As `_check`; what a person wrote stays as it is, to the letter."""
    edit = edit_of(task)
    if not edit:
        settled_text = settled(memory, task.kind, task.period)
        return _check(task.kind, settled_text, ids_shown(task))
    memory = normalise_key_marks(mask_secrets(memory))
    if not keeps_edit(task, memory):
        raise NoteRejected(
            "target.memory 是人改定的，要一字不改地留在新正文里，请原样抄上，只在它后面补充。"
        )
    before, _, behind = memory.partition(edit)
    memory = before + with_more(edit, behind)
    text, keys, complaint = _check(task.kind, memory, ids_shown(task))
    # The cut came where the person's words are, or left nothing behind them.
    if not keeps_edit(task, text) or text.endswith(edit + CUT_MARK):
        return edit, find_key_messages(edit), complaint
    return text, keys, complaint


def with_more(edit: str, more: str) -> str:
    """A person's text, to the letter, and more sentences behind it: on a line of their own where
    it ends without a full stop or the like, which would alter their words."""
    end = strip_key_marks(edit).rstrip(_CLOSING)
    begin = strip_key_marks(more).lstrip(" ")
    if end and begin and end[-1] not in _ENDS and begin[0] not in f"{_MARKS}{_CLOSING}\n":
        return f"{edit}\n{more}"
    return edit + more


def _check(kind: NoteKind, memory: str, shown: Collection[int]) -> tuple[str, tuple[int, ...], str]:
    """Text, key messages, and the complaint where it is good but for a length now cut."""
    limit = UNIT_LIMITS[kind]
    memory = mask_secrets(memory)  # its length is judged as it will be stored
    try:
        return *check_note(kind, memory, shown), ""
    except NoteRejected as error:
        if count_units(memory) <= limit:
            raise
        return *check_note(kind, cut_to_units(memory, limit) + CUT_MARK, shown), str(error)

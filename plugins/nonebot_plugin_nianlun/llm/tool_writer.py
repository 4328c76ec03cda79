"""Notes by a model that calls the skill as a tool, round after round, until the work is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
import json
import secrets
from typing import Any, Literal, TypeAlias

from ..errors import BadAnswer, ModelError
from ..memory.answers import parse_json
from ..memory.asking import background, block
from ..memory.calendar import Calendar
from ..memory.keymarks import find_key_messages
from ..memory.notes import not_an_answer
from ..memory.owed import Batch, NoteJob
from ..memory.render import one_line
from ..memory.skill import SKILL_NAME, SKILL_TOOL, SkillSession, failure
from ..memory.tokens import estimate_tokens
from ..memory.units import count_units
from ..types import ChatKey, Note, RollupTask, Scene, Usage, Window
from .client import ModelClient
from .model_writer import ReportUsage, activity_parts, persona, rules
from .tool_turns import ToolCall, ToolTurn

TakenBack: TypeAlias = Callable[[ChatKey], Awaitable[bool]]
"""Whether something was taken back in a chat that its notes still hold."""

_ROUNDS = 8
"""Completions for one window or batch: the task, the text, and some that were not good."""
_TALK_TOKENS = 30_000
"""A conversation that has grown so long is not gone on with: its tasks counted between jobs, and
what is said to one task without it."""
_LAST_WORDS = 50
"""Units: nobody needs more to say that nothing is worth noting. It may be the note itself."""
_NUDGE = (
    f"请调用工具 {SKILL_NAME}：先用 get_tasks 取任务，写好就提交；"
    "活动没有值得记的，用 decline。"
)  # fmt: skip


class _Table:
    """A desk with one job on it, which keeps what is handed in until it is stored elsewhere."""

    def __init__(self, job: NoteJob | Batch) -> None:
        self.job = job
        self.done = False
        self.notes: list[Note] = []
        self.spent = Usage()

    async def next_note(self) -> NoteJob | None:
        return self.job if isinstance(self.job, NoteJob) else None

    async def next_batch(self) -> Batch | None:
        return self.job if isinstance(self.job, Batch) else None

    async def keep_note(self, job: NoteJob, note: Note | None) -> None:
        self.notes = [] if note is None else [note]
        self.done = True

    async def keep_memories(self, batch: Batch, notes: Sequence[Note]) -> None:
        self.notes = list(notes)
        self.done = True

    def priced(self) -> list[Note]:
        """The notes, each with its share of what the work on them cost."""
        return [replace(note, usage=self.spent.share(len(self.notes))) for note in self.notes]


@dataclass(slots=True)
class _Talk:
    """A conversation with the model."""

    purpose: Literal["activity", "rollup"]
    turns: list[dict[str, Any]]
    waiting: list[ToolCall] = field(default_factory=list)
    """Calls of the last turn that are not answered yet."""

    def say(self, text: str) -> None:
        turn = {"role": "user", "content": text}
        if self.turns[-1] != turn:
            self.turns.append(turn)

    def tokens(self) -> int:
        return sum(estimate_tokens(json.dumps(turn, ensure_ascii=False)) for turn in self.turns)


@dataclass(slots=True)
class _Work:
    """One job in a conversation."""

    talk: _Talk
    table: _Table
    session: SkillSession
    asked: bool = False
    """The task was fetched."""
    failed: bool = False
    """Something was handed in that could not be taken."""
    room: int = 0
    """Tokens that the conversation may have in all."""

    def __post_init__(self) -> None:
        self.room = self.talk.tokens() + _TALK_TOKENS

    async def call(self, arguments: str | dict[str, Any]) -> dict[str, Any]:
        if self.asked and isinstance(arguments, dict) and arguments.get("action") == "get_tasks":
            # A model that asks again and again must not be sent all of it each time.
            return failure("任务在上面，没有变，请直接提交")
        answer = await self.session.call(arguments)
        if "prompt" in answer:
            self.asked = True
            self.room += estimate_tokens(json.dumps(answer, ensure_ascii=False))
        self.failed = self.failed or not answer.get("success", True)
        return answer


class ToolWriter:
    """Writes notes with a tool-calling model. One for each run: the batches of a roll-up are
    one conversation, in which each is asked for by the model itself."""

    name: Literal["model"] = "model"

    def __init__(
        self,
        client: ModelClient,
        calendar: Calendar,
        report_usage: ReportUsage,
        taken_back: TakenBack,
        model: str | None = None,
        *,
        facts: bool = True,
    ) -> None:
        self._client = client
        self._calendar = calendar
        self._report_usage = report_usage
        self._taken_back = taken_back
        self._model = model
        self._parts = {"activity": activity_parts(facts), "rollup": ("rollup",)}
        self._rollup: _Talk | None = None

    async def write_activity(self, window: Window, scene: Scene) -> Note | None:
        """A note about the window with its facts, or None when the model declined or ended."""
        table = _Table(NoteJob(window))
        await self._work(self._opening("activity", scene), table, scene)
        notes = table.priced()
        return notes[0] if notes else None

    async def write_memories(
        self, tasks: Sequence[RollupTask], scene: Scene, has_next_tasks: bool
    ) -> list[Note]:
        """The complete new text of each target, in the order of the tasks."""
        # Taken out meanwhile: a conversation in which something failed is not gone on with.
        talk, self._rollup = self._rollup, None
        if talk is not None and await self._taken_back(scene.chat):
            talk = None  # it may hold the very words
        table = _Table(Batch(tuple(tasks), has_next_tasks))
        talk = talk or self._opening("rollup", scene)
        await self._work(talk, table, scene)
        if has_next_tasks and talk.tokens() < _TALK_TOKENS:
            self._rollup = talk
        return table.priced()

    def _opening(self, purpose: Literal["activity", "rollup"], scene: Scene) -> _Talk:
        nonce = secrets.token_hex(4)
        place = block("场合", one_line(scene.place), nonce)
        asked = "\n\n".join([*background(scene, nonce), place, "请更新短期记忆。"])
        system = rules("rules", *self._parts[purpose], "tool") + persona(scene)
        return _Talk(
            purpose, [{"role": "system", "content": system}, {"role": "user", "content": asked}]
        )

    async def _work(self, talk: _Talk, table: _Table, scene: Scene) -> None:
        """Let the model work until the job is done. Raises ModelError."""

        async def same_scene(window: Window) -> Scene:
            return scene

        work = _Work(talk, table, SkillSession(table, same_scene, self._calendar))
        await _answer_calls(work)
        for _ in range(_ROUNDS):
            if table.done:
                return
            if talk.tokens() > work.room:
                break
            await self._round(work, scene)
        if not table.done:
            raise BadAnswer("模型用工具写了很多，没有交出可用的记忆")

    async def _round(self, work: _Work, scene: Scene) -> None:
        talk = work.talk
        try:
            turn = await self._client.converse(talk.turns, [SKILL_TOOL], model=self._model)
        except ModelError as error:
            work.table.spent += error.usage or Usage()
            await self._report_usage(scene.chat, talk.purpose, error.usage or Usage(), False)
            if not isinstance(error, BadAnswer):
                raise
            talk.say(_NUDGE)
            return
        work.table.spent += turn.usage
        talk.turns.append(turn.message)
        if turn.calls:
            talk.waiting = list(turn.calls)
            good = await _answer_calls(work)
        else:
            good = await _hear(work, turn)
        await self._report_usage(scene.chat, talk.purpose, turn.usage, good)


async def _answer_calls(work: _Work) -> bool:
    """Answer the calls in order until the job is done; whether all of them were good.

    What stands behind the submission that ends a batch is about the next one, and waits for it.
    """
    talk, good = work.talk, True
    while talk.waiting and not work.table.done:
        call = talk.waiting.pop(0)
        if call.name == SKILL_NAME:
            answer = await work.call(_mended(call.arguments))
        else:
            answer = failure(f"没有叫 {call.name[:40]!r} 的工具，只有 {SKILL_NAME}")
        content = json.dumps(answer, ensure_ascii=False)
        talk.turns.append({"role": "tool", "tool_call_id": call.id, "content": content})
        good = good and answer.get("success", True)
    return good


def _mended(arguments: str) -> str | dict[str, Any]:
    """The object in the arguments, of which models make as much of a mess as of any JSON."""
    try:
        found = parse_json(arguments)
    except BadAnswer:
        return arguments
    return found if isinstance(found, dict) else {"actions": found}


async def _hear(work: _Work, turn: ToolTurn) -> bool:
    """Take words in the place of a call: a submission as JSON, or the end of the work."""
    submitted = _submission(turn.text)
    if submitted is not None:
        answer = await work.call(submitted)
        work.talk.say(json.dumps(answer, ensure_ascii=False))
        return answer.get("success", True)
    if _ends(work, turn):
        answer = await work.call({"action": "decline"})
        return answer["success"]
    work.talk.say(_NUDGE)
    return False


def _submission(text: str) -> dict[str, Any] | None:
    try:
        found = parse_json(text)
    except BadAnswer:
        return None
    if isinstance(found, list):
        return {"actions": found} if all(isinstance(item, dict) for item in found) else None
    return found


def _ends(work: _Work, turn: ToolTurn) -> bool:
    """Whether these words mean that nothing is worth noting, and not that something broke.

    Words that cite messages, or many words, are a note in the wrong place, which must not get
    lost.
    """
    if not work.asked or work.failed or not isinstance(work.table.job, NoteJob):
        return False
    if find_key_messages(turn.text) or count_units(turn.text) > _LAST_WORDS:
        return False
    return turn.whole and not not_an_answer(turn.text)

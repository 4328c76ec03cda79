"""A roll-up task that is larger than a model's input: written in parts, then from the parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..types import Activity, Memory, Note, RollupTask
from .tokens import estimate_tokens

_HEAD_TOKENS = 20
"""What the time before a source costs, with its line's ends."""


def task_tokens(task: RollupTask) -> int:
    """What the texts of a task cost a model, estimated."""
    return sum(map(_source_tokens, task.sources)) + _target_tokens(task)


def split_task(task: RollupTask, limit: int) -> list[RollupTask]:
    """Tasks over runs of the sources, in order, that cost at most `limit` tokens each.

    Empty where nothing is to be split: the whole fits, or no two sources fit together.
    """
    if task_tokens(task) <= limit:
        return []
    runs = _runs(task.sources, limit)
    if len(runs) == len(task.sources):
        return []
    return [
        replace(task, sources=tuple(run), target=None, rebuild=True, closes=False) for run in runs
    ]


def joined_task(task: RollupTask, parts: Sequence[RollupTask], notes: Sequence[Note]) -> RollupTask:
    """The task with what was written of its parts in the place of its sources."""
    texts = [_as_source(part.sources, note) for part, note in zip(parts, notes, strict=True)]
    return replace(task, sources=tuple(texts))


def _as_source(sources: Sequence[Activity | Memory], note: Note) -> Activity | Memory:
    first, last = sources[0], sources[-1]
    if isinstance(first, Memory) and isinstance(last, Memory) and first is not last:
        first = replace(first, period=f"{first.period} 至 {last.period}")
    return replace(first, text=note.text, key_messages=note.key_messages)


def _runs(sources: Sequence[Activity | Memory], limit: int) -> list[list[Activity | Memory]]:
    runs: list[list[Activity | Memory]] = []
    size = 0
    for source in sources:
        tokens = _source_tokens(source)
        if not runs or size + tokens > limit:
            runs.append([])
            size = 0
        runs[-1].append(source)
        size += tokens
    return runs


def _source_tokens(source: Activity | Memory) -> int:
    return estimate_tokens(source.text) + _HEAD_TOKENS


def _target_tokens(task: RollupTask) -> int:
    return 0 if task.rebuild or task.target is None else estimate_tokens(task.target.text)

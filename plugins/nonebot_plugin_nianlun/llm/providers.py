"""How providers differ: what each is known to refuse, and the change of the request that helps.

Nobody is told apart by name or address: the same model is served by many, and a gateway hides
which. What an endpoint complains of tells what it needs. The complaints in the table below are
those of OpenAI, DeepSeek, Qwen (DashScope), GLM, Kimi, Groq, OpenRouter, Ollama and vLLM.

A change is a word, so that it can be kept: `without:temperature` for a field that is not sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
import re
from typing import Any

STREAM = "stream"
NO_THINKING = "no_thinking"
RENAME_LIMIT = "rename_limit"
FILL_REASONING = "fill_reasoning"
STRIP_REASONING = "strip_reasoning"
SYSTEM_AS_USER = "system_as_user"
MERGE_TURNS = "merge_turns"
_WITHOUT = "without:"
WITHOUT_TOOLS = f"{_WITHOUT}tools"

_LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_NEEDED = {"model", "messages", "stream", "tools", "input", "encoding_format"}
"""Never left out because they are named somewhere in a complaint."""
_REASONING = ("reasoning_content", "reasoning", "reasoning_details")
_SHORT = 4
"""Letters; a name as short as `n` or `stop` is also an ordinary word."""


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_KNOWN: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    # Qwen's hybrid models think by default, and then answer only in a stream.
    (
        _words(r"enable_thinking\W.{0,20}(?:must|should|only|needs?)\b.{0,40}(?:false\b|stream)"),
        (NO_THINKING, STREAM),
    ),
    # DeepSeek, vLLM and others know no JSON mode; Qwen has none while it thinks.
    (
        _words(r"response_format|json[\s_-]?(?:mode|object|schema)|enable_thinking.{0,40}json"),
        (f"{_WITHOUT}response_format",),
    ),
    (_words(r"enable_thinking.{0,60}\btrue\b"), (f"{_WITHOUT}enable_thinking",)),
    # QwQ and some relays answer in a stream only.
    (
        _words(
            r"only\s+supports?\s+(?:the\s+)?stream|(?:enable|set|use)\s+(?:the\s+)?\W?stream"
            r"|stream\W{0,3}(?:must|should|needs?\s+to|is\s+required)|non[\s-]?stream\w*\s.{0,30}not"
            r"|(?:仅|只)支持流式"
        ),
        (STREAM,),
    ),
    # OpenAI's reasoning models and older servers name the limit differently.
    (_words(r"max_(?:completion_)?tokens"), (RENAME_LIMIT,)),
    # DeepSeek and Kimi want a thinking model's reasoning back beside its calls; Groq refuses it.
    (
        _words(
            r"reasoning_content.{0,60}(?:missing|required|must\s+be\s+(?:passed|provided|set)|缺少)"
            r"|(?:missing|缺少).{0,30}reasoning_content"
        ),
        (FILL_REASONING,),
    ),
    (_words(r"reasoning_(?:content|details)|['\"`]reasoning['\"`]"), (STRIP_REASONING,)),
    # Ollama, OpenRouter, and a vLLM that was started without a parser for calls.
    (
        _words(
            r"(?:not|n't)\s+support\w*\s+(?:for\s+)?(?:tools?|functions?)\b|support\s+tool\s+use"
            r"|tools?\W{0,3}(?:is|are)\s+not\s+(?:supported|available)|tool[\s_-]?choice\W.{0,20}requires"
            r"|不支持\W{0,3}(?:tools?|工具|函数)"
        ),
        (WITHOUT_TOOLS,),
    ),
    # Templates of Gemma, Mistral and others, as vLLM and llama.cpp apply them.
    (_words(r"system\W{0,3}role\W{0,3}(?:is\s+)?not\s+supported|only\s+user\s+and\s+assistant"),
     (SYSTEM_AS_USER,)),
    (_words(r"roles?\s+must\s+alternate"), (SYSTEM_AS_USER, MERGE_TURNS)),
)  # fmt: skip


def change_for(
    complaint: str, param: str | None, body: Mapping[str, Any], made: Collection[str]
) -> str | None:
    """The one further change of a refused request that the complaint asks for, if any.

    `param` is the field that the provider blames, where it says so; `made` are the changes with
    which `body` was sent.
    """
    sent = changed(body, made)
    for change in _candidates(complaint, param, sent):
        if change not in made and changed(body, {*made, change}) != sent:
            return change
    return None


def _candidates(complaint: str, param: str | None, sent: Mapping[str, Any]) -> Iterator[str]:
    for words, changes in _KNOWN:
        if words.search(complaint):
            # Whoever asked for thinking keeps it.
            wished = sent.get("enable_thinking") is True
            yield from (c for c in changes if not (wished and c == NO_THINKING))
    for name in _named(complaint, param, sent):
        yield _WITHOUT + name


def _named(complaint: str, param: str | None, sent: Mapping[str, Any]) -> list[str]:
    """Fields that may be left out and are named, the one that is blamed first."""
    found: list[tuple[int, str]] = []
    for name in sent.keys() - _NEEDED:
        quotes = "['\"`]" if len(name) <= _SHORT else ""
        place = re.search(rf"(?<!\w){quotes}{re.escape(name)}{quotes}(?!\w)", complaint)
        if param is not None and re.split(r"[.\[]", param)[0] == name:
            found.append((-1, name))
        elif place is not None:
            found.append((place.start(), name))
    return [name for _, name in sorted(found)]


def changed(body: Mapping[str, Any], changes: Collection[str]) -> dict[str, Any]:
    """A request with these changes made."""
    made = dict(body)
    if STREAM in changes:
        made = {"stream_options": {"include_usage": True}, **made, "stream": True}
    if NO_THINKING in changes:
        made["enable_thinking"] = False
    if RENAME_LIMIT in changes:
        made = {_LIMITS.get(name, name): value for name, value in made.items()}
    if "messages" in made:
        made["messages"] = _reshaped(made["messages"], changes)
    for change in changes:
        if change.startswith(_WITHOUT):
            made.pop(change.removeprefix(_WITHOUT), None)
    if WITHOUT_TOOLS in changes:
        made.pop("tool_choice", None)
    return made


def _reshaped(turns: list[dict[str, Any]], changes: Collection[str]) -> list[dict[str, Any]]:
    if STRIP_REASONING in changes:
        turns = [{k: v for k, v in turn.items() if k not in _REASONING} for turn in turns]
    elif FILL_REASONING in changes:
        turns = [_with_reasoning(turn) for turn in turns]
    if SYSTEM_AS_USER in changes:
        turns = [t | {"role": "user"} if t["role"] == "system" else t for t in turns]
    return _merged(turns) if {SYSTEM_AS_USER, MERGE_TURNS} & set(changes) else turns


def _with_reasoning(turn: dict[str, Any]) -> dict[str, Any]:
    """A turn of the model's with some reasoning; an empty one is refused by some as missing."""
    if turn["role"] != "assistant" or isinstance(turn.get("reasoning_content"), str):
        return turn
    said = turn.get("reasoning")
    return turn | {"reasoning_content": said if isinstance(said, str) and said else "."}


def _merged(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Turns of one role that follow each other as one, where both are plain text."""
    merged: list[dict[str, Any]] = []
    for turn in turns:
        last = merged[-1] if merged else {}
        plain = turn.keys() == {"role", "content"} and last.keys() == {"role", "content"}
        texts = last.get("content"), turn.get("content")
        if (
            plain
            and last["role"] == turn["role"] != "tool"
            and all(isinstance(text, str) for text in texts)
        ):
            merged[-1] = turn | {"content": "\n\n".join(map(str, texts))}
        else:
            merged.append(turn)
    return merged

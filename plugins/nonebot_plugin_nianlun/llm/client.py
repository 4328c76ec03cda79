"""A model behind any OpenAI-compatible endpoint, with every odd answer turned into one error tree.

Providers answer 200 with HTML, with an error object, with no choices, or with thoughts mixed
into the text, so the body is read as plain data and checked here rather than trusted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
import json as jsonlib
import re
from typing import Any
from urllib.parse import urlsplit

import openai

from ..errors import BadAnswer, ModelError, ModelRefused, ModelUnavailable
from ..types import Usage
from .tool_turns import ToolTurn, read_turn

_LONGEST_BODY = 400_000
"""Characters; a hundred times what was asked for, and still quick to read through."""
_MOST_TOKENS = 10**9
_OPENAI = "https://api.openai.com/v1"
_THOUGHT = r"<(think|thinking|thought)\b[^<>]*>.*?(?:</\1\s*>|\Z)"
_THOUGHT_ANYWHERE = re.compile(_THOUGHT, re.DOTALL | re.IGNORECASE)
_THOUGHT_AT_LINE_START = re.compile(r"^[ \t]*" + _THOUGHT, re.DOTALL | re.IGNORECASE | re.MULTILINE)
_THOUGHT_END = re.compile(
    r"\A.*</(?:think|thinking|thought)\s*>[ \t]*$", re.DOTALL | re.IGNORECASE | re.MULTILINE
)
_FILTER_WORDS = re.compile(
    r"content[\s_-]?(?:filter|policy|management|moderation|exists[\s_]risk)|data_?inspection"
    r"|risk_?control|high[\s_-]risk|(?<!case[\s-])sensitive|moderation|flagged"
    r"|敏感|违规|不合规|不当内容|内容安全|高风险|内容.{0,4}风险",
    re.IGNORECASE,
)
_JSON_MODE_WORDS = re.compile(
    r"response_format|json[\s_-]?(?:mode|object|schema)|enable_thinking", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Completion:
    """A usable answer: text that is not blank, without thoughts."""

    text: str
    usage: Usage
    model: str


class ModelClient:
    """Chat completions of one endpoint. Nothing is opened before the first call.

    `timeout` is seconds for a whole call including its retries; `max_tries` bounds how often a
    request is sent. Waits between tries grow, or are what `Retry-After` says.
    """

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str,
        model: str,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float = 120,
        max_tries: int = 3,
    ) -> None:
        self.model = model
        self._api_key = api_key
        self._base_url = base_url or _OPENAI
        self._host = _host_of(self._base_url)
        self._extra_body = dict(extra_body or {})
        self._timeout = timeout
        self._max_tries = max_tries
        self._without_json_mode: set[str] = set()
        self._opened: openai.AsyncOpenAI | None = None

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        json: bool = False,
        model: str | None = None,
    ) -> Completion:
        """One completion; `json` asks for a JSON object where the endpoint can promise one.

        Raises ModelUnavailable (worth another try later), ModelRefused (the content was
        refused) or BadAnswer (there is no text in the answer).
        """
        model = model or self.model
        answer = await self._ask({"model": model, "messages": _well_formed(messages)}, json)
        choice = self._choice(answer, model)
        usage = _usage(answer)
        with _costing(usage):
            text = _without_thoughts(_choice_text(choice, model), json)
            if not text:
                raise BadAnswer(f"模型 {model} 的回答是空的")
        named = answer.get("model")
        return Completion(text, usage, named if isinstance(named, str) else model)

    async def converse(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        *,
        model: str | None = None,
    ) -> ToolTurn:
        """The model's next turn, in which it may call the tools. Raises as `complete` does."""
        model = model or self.model
        fields = {"model": model, "messages": _well_formed(messages), "tools": list(tools)}
        answer = await self._ask(fields, json=False)
        choice = self._choice(answer, model)
        usage = _usage(answer)
        with _costing(usage):
            turn = read_turn(choice, _without_thoughts(_choice_text(choice, model), True), usage)
            if not turn.text and not turn.calls:
                raise BadAnswer(f"模型 {model} 的回答是空的")
        return turn

    async def close(self) -> None:
        """Close the connections; a later call opens them again."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    def _open(self) -> openai.AsyncOpenAI:
        if self._opened is None:
            if not self._api_key.isascii():
                raise ModelUnavailable("OPENAI_API_KEY 里有密钥不会有的字符，请检查")
            if not self._host:
                raise ModelUnavailable("OPENAI_BASE_URL 不是一个 http(s) 地址，请检查")
            self._opened = openai.AsyncOpenAI(
                api_key=self._api_key,
                base_url=self._base_url,
                timeout=self._timeout,
                max_retries=self._max_tries - 1,
            )
        return self._opened

    async def _ask(self, fields: dict[str, Any], json: bool) -> dict[str, Any]:
        """The answer to a request, as an object."""
        model = fields["model"]
        try:
            async with asyncio.timeout(self._timeout):
                body = await self._request(fields, json)
        except TimeoutError:
            raise ModelUnavailable(f"模型 {model} 在 {self._timeout:g} 秒内没有回答") from None
        except openai.OpenAIError as error:
            # The original holds the request with its headers, so it must not be chained.
            raise self._failure(error, model) from None
        answer = _json_object(body)
        if answer is None:
            raise ModelUnavailable(
                f"模型服务 {self._host} 返回的不是接口的回答："
                "请检查 OPENAI_BASE_URL（一般以 /v1 结尾）"
            )
        return answer

    async def _request(self, fields: dict[str, Any], json: bool) -> str:
        """The body of the answer; without JSON mode where the endpoint is found to refuse it."""
        model = fields["model"]
        if not json or model in self._without_json_mode:
            return await self._send(fields)
        try:
            return await self._send(fields | {"response_format": {"type": "json_object"}})
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            if not _JSON_MODE_WORDS.search(_body_text(error)):
                raise
        body = await self._send(fields)
        # Remembered only now: a request that is refused both ways has another fault.
        self._without_json_mode.add(model)
        return body

    async def _send(self, fields: dict[str, Any]) -> str:
        completions = self._open().chat.completions.with_raw_response
        body = (await completions.create(**fields, extra_body=self._extra_body or None)).text
        if len(body) > _LONGEST_BODY:
            raise BadAnswer(f"模型 {fields['model']} 的回答长得不正常（{len(body)} 个字符）")
        return body

    def _failure(self, error: openai.OpenAIError, model: str) -> ModelError:
        """What a person should know about an error of the SDK, in one line without the key."""
        if isinstance(error, openai.APIStatusError):
            return self._status_failure(error, model)
        if isinstance(error, openai.APIConnectionError):
            return ModelUnavailable(
                f"连不上模型服务 {self._host}（{type(error.__cause__ or error).__name__}）："
                "请检查网络与 OPENAI_BASE_URL"
            )
        return ModelUnavailable("不能调用模型：请检查 OPENAI_API_KEY 是否已经填写")

    def _status_failure(self, error: openai.APIStatusError, model: str) -> ModelError:
        status, reason = error.status_code, _body_text(error)
        if status in (400, 403, 422) and _FILTER_WORDS.search(reason):
            return ModelRefused(f"模型服务 {self._host} 拒绝了这段内容（{status}）")
        if status in (401, 403):
            return ModelUnavailable(
                f"模型服务 {self._host} 不接受密钥（{status}）：请检查 OPENAI_API_KEY"
            )
        if status == 404:
            return ModelUnavailable(
                f"模型服务 {self._host} 上没有模型 {model} 或这个地址（404）："
                "请检查 NIANLUN__MODEL 与 OPENAI_BASE_URL（一般以 /v1 结尾）"
            )
        if status == 402 or "insufficient_quota" in reason:
            return ModelUnavailable(f"模型服务 {self._host} 的余额不足（{status}）：请检查账户")
        if status == 429 or status >= 500:
            return ModelUnavailable(f"模型服务 {self._host} 暂时不可用（{status}）")
        return ModelUnavailable(
            f"模型服务 {self._host} 不接受请求（{status}）：{self._one_line(reason)}"
        )

    def _choice(self, answer: dict[str, Any], model: str) -> dict[str, Any]:
        choice = _first_choice(answer)
        if choice is None and answer.get("error"):
            reason = jsonlib.dumps(answer["error"], ensure_ascii=False)
            if _FILTER_WORDS.search(reason):
                raise ModelRefused(f"模型服务 {self._host} 拒绝了这段内容")
            raise ModelUnavailable(f"模型服务 {self._host} 返回错误：{self._one_line(reason)}")
        if choice is None:
            raise BadAnswer(f"模型 {model} 的回答里没有内容")
        return choice

    def _one_line(self, reason: str) -> str:
        hidden = reason.replace(self._api_key, "***") if self._api_key else reason
        return " ".join(hidden.split())[:200]


@contextmanager
def _costing(usage: Usage) -> Iterator[None]:
    """An answer that cannot be used has its price all the same."""
    try:
        yield
    except ModelError as error:
        error.usage = usage
        raise


def _host_of(url: str) -> str:
    """Host and port without credentials; empty where it is no HTTP address."""
    try:
        parts = urlsplit(url)
        _ = parts.port, (parts.hostname or "").encode("idna")  # both raise on nonsense
    except ValueError:
        return ""
    return parts.netloc.rpartition("@")[2] if parts.scheme in ("http", "https") else ""


def _body_text(error: openai.APIStatusError) -> str:
    """All that the provider says, wherever in the body it says it."""
    return error.response.text


def _well_formed(value: Any) -> Any:
    """A copy in which lone surrogates, which UTF-8 cannot carry, are question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {key: _well_formed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_well_formed(item) for item in value]
    return value


def _json_object(body: str) -> dict[str, Any] | None:
    try:
        answer = jsonlib.loads(body)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _first_choice(answer: dict[str, Any]) -> dict[str, Any] | None:
    choices = answer.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return None


def _choice_text(choice: dict[str, Any], model: str) -> str:
    message = choice.get("message")
    if not isinstance(message, dict):
        message = {}
    text = _joined(message.get("content"))
    refused = not text.strip() and message.get("refusal")
    if refused or choice.get("finish_reason") in ("content_filter", "sensitive"):
        raise ModelRefused(f"模型 {model} 拒绝了这段内容")
    return _well_formed(text)


def _joined(content: object) -> str:
    """Content as text; some endpoints give a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _without_thoughts(text: str, json: bool) -> str:
    """Drop reasoning that the model left in its answer, also when it was never closed.

    In JSON only thoughts that start or end a line are dropped: a tag inside a string was quoted
    from a chat, and cutting there would let a single message spoil every note about it.
    """
    text = (_THOUGHT_AT_LINE_START if json else _THOUGHT_ANYWHERE).sub("", text)
    return _THOUGHT_END.sub("", text).strip()


def _usage(answer: dict[str, Any]) -> Usage:
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        prompt=_count(usage.get("prompt_tokens")),
        cached=_count(cached) or _count(usage.get("prompt_cache_hit_tokens")),
        completion=_count(usage.get("completion_tokens")),
    )


def _count(value: object) -> int:
    return min(value, _MOST_TOKENS) if isinstance(value, int) and value > 0 else 0

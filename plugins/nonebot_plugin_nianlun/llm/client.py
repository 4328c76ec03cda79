"""A model behind any OpenAI-compatible endpoint, with every odd answer turned into one error tree.

Providers answer 200 with HTML, with an error object, with no choices, or with thoughts mixed
into the text, so the body is read as plain data and checked here rather than trusted. What else
they differ in is found out by asking, and remembered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..clock import Clock, SystemClock
from ..errors import BadAnswer, ModelUnavailable
from ..memory.answers import without_thoughts
from ..types import Usage
from . import failures, providers
from .answer_body import (
    answer_object,
    choice_text,
    cost,
    first_choice,
)
from .answer_body import costing as costing
from .answer_body import told_usage as told_usage
from .answer_body import well_formed as well_formed
from .breaker import Breaker
from .failures import Asked, Failure
from .tool_turns import ToolTurn, read_turn
from .traits import EndpointMemory, Traits
from .whole_body import whole_body

if TYPE_CHECKING:
    import openai

_LONGEST_BODY = 400_000
"""Characters; a hundred times what was asked for, and still quick to read through."""
_LONGEST_STREAM = 10 * _LONGEST_BODY
"""Each few letters come in an envelope of their own."""
_MOST_BYTES = 4 * _LONGEST_STREAM
"""UTF-8 has up to four for a character."""
_CONNECT_SECONDS = 10
_PATIENCE = 30
"""Seconds: whoever gives up after so long has waited for an answer that does not come."""
_MOST_CHANGES = 4
"""By which one call may find out what its model needs."""
_MALFORMED = (400, 422)
"""By these a request is refused for what it holds."""
_OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Completion:
    """A usable answer: text that is not blank, without thoughts."""

    text: str
    usage: Usage
    whole: bool = True
    """It was not cut off by a limit of the provider's."""


class ModelClient:
    """Chat completions of one endpoint. Nothing is opened before the first call.

    `timeout` is seconds for a whole call including its retries; `max_tries` bounds how often a
    request is sent that fails for now. Waits between tries grow, or are what `Retry-After` says;
    what would outlast the call is not waited for. A request that is refused for what it holds is
    sent again at once without that, at most a few times in a call; what helped is kept in
    `memory`. After many failures in a row calls fail at once for a while.
    """

    _key_setting, _url_setting, _model_setting = (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "NIANLUN__MODEL",
    )
    """What an error tells to look at."""

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str,
        model: str,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float = 120,
        max_tries: int = 3,
        memory: EndpointMemory | None = None,
        clock: Clock | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        # It takes long, and nobody without a model is to wait for it. Here and not in the first
        # call, which would hold up the event loop.
        import openai  # noqa: F401

        self.model = model
        self._api_key = api_key
        self._base_url = base_url or _OPENAI
        self._host = _host_of(self._base_url)
        self._extra_body = dict(extra_body or {})
        self._timeout = timeout
        self._max_tries = max_tries
        self._monotonic = monotonic
        self._breaker = Breaker(monotonic)
        path = urlsplit(self._base_url).path.rstrip("/") if self._host else ""
        self.endpoint = self._host + path
        """Its address without credentials: what is known of it is kept under this name."""
        self._traits = Traits(self.endpoint, clock or SystemClock(), memory)
        self._reported: str | None = ""
        self._opened: openai.AsyncOpenAI | None = None

    @property
    def trouble(self) -> str | None:
        """Why the endpoint is left alone for now, in one line; None while it is asked."""
        return self._breaker.trouble

    def try_now(self) -> None:
        """Let one request through although the endpoint is left alone for now: a person waits."""
        self._breaker.end_pause()

    def takes_tools(self, model: str | None = None) -> bool:
        """False once the model was found to refuse them."""
        return providers.WITHOUT_TOOLS not in self._traits.seen(model or self.model)

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        json: bool = False,
        model: str | None = None,
        seconds: float | None = None,
    ) -> Completion:
        """One completion; `json` asks for a JSON object where the endpoint can promise one.
        `seconds` is the time limit of this call, where it is to be shorter than usual.

        Raises ModelUnavailable (worth another try later), ModelRefused (the content was
        refused) or BadAnswer (there is no text in the answer).
        """
        model = model or self.model
        fields = {"model": model, "messages": well_formed(messages)}
        answer = await self._ask(fields, json, seconds)
        choice = self._choice(answer, model)
        usage = cost(answer, fields, choice)
        with costing(usage):
            text = without_thoughts(choice_text(choice, model), json)
            if not text:
                raise _empty(choice, model)
        whole = choice.get("finish_reason") != "length"
        return Completion(text, usage, whole)

    async def converse(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        *,
        model: str | None = None,
        seconds: float | None = None,
        words_will_do: bool = False,
        may_call: bool = True,
    ) -> ToolTurn:
        """The model's next turn, in which it may call the tools. One that takes no tools answers
        without them where `words_will_do`. Without `may_call` it is told to use words, under the
        same tools so that the request begins as those before; not every endpoint heeds that.
        Raises as `complete` does.
        """
        model = model or self.model
        await self._traits.of(model)
        if not words_will_do:
            self._want_tools(model)
        fields = {"model": model, "messages": well_formed(messages), "tools": list(tools)}
        if not may_call:
            fields["tool_choice"] = "none"
        spare = providers.WITHOUT_TOOLS if words_will_do else None
        answer = await self._ask(fields, False, seconds, spare)
        choice = self._choice(answer, model)
        usage = cost(answer, fields, choice)
        with costing(usage):
            if not words_will_do:
                self._want_tools(model)  # it may have been found out only now
            text = without_thoughts(choice_text(choice, model), not words_will_do)
            turn = read_turn(choice, text, usage, _names(tools))
            if not turn.text and not turn.calls:
                raise _empty(choice, model)
        return turn

    def _want_tools(self, model: str) -> None:
        if not self.takes_tools(model):
            raise ModelUnavailable(f"模型 {model} 不能调用工具：请换一个模型")

    async def close(self) -> None:
        """Close the connections; a later call opens them again."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    def _open(self) -> openai.AsyncOpenAI:
        import openai

        if self._opened is None:
            if not self._api_key.isascii():
                raise ModelUnavailable(f"{self._key_setting} 里有密钥不会有的字符，请检查")
            if not self._host:
                raise ModelUnavailable(f"{self._url_setting} 不是一个 http(s) 地址，请检查")
            try:
                self._opened = openai.AsyncOpenAI(
                    api_key=self._api_key,
                    base_url=self._base_url,
                    timeout=openai.Timeout(self._timeout, connect=_CONNECT_SECONDS),
                    max_retries=0,
                    # The SDK's own complains once more, in a task of its own, if it is half made.
                    http_client=openai.DefaultAsyncHttpxClient(),
                )
            except openai.OpenAIError:
                raise ModelUnavailable(
                    f"不能调用模型：请检查 {self._key_setting} 是否已经填写"
                ) from None
            except Exception as error:
                raise ModelUnavailable(failures.of_surroundings(error)) from error
        return self._opened

    async def _ask(
        self,
        fields: dict[str, Any],
        json: bool,
        seconds: float | None = None,
        spare: str | None = None,
    ) -> dict[str, Any]:
        """The answer to a request, as an object. `spare` is the change that is made in the end,
        when nothing tells what else a refusal is about."""
        if json:
            fields = fields | {"response_format": {"type": "json_object"}}
        try:
            return await self._answer(
                fields | self._extra_body, min(self._timeout, seconds or self._timeout), spare
            )
        finally:
            verdict = self._breaker.verdict if self._breaker.is_open else None
            if self._reported != verdict:
                self._reported = verdict
                await self._traits.report(verdict)

    async def _answer(
        self, body: dict[str, Any], seconds: float, spare: str | None
    ) -> dict[str, Any]:
        """The answer, after as many requests as that takes and no more than may be."""
        model = body["model"]
        deadline = asyncio.get_running_loop().time() + seconds
        known = made = await self._traits.of(model)
        tries = 0
        while True:
            outcome = await self._try(providers.changed(body, made), deadline, seconds)
            if not isinstance(outcome, Failure):
                if made != known:
                    # Only now: a request that is refused both ways has another fault.
                    await self._traits.learn(model, made)
                return outcome
            change = _change(outcome, body, made, spare)
            if change is not None and len(made - known) < _MOST_CHANGES:
                made = made | {change}
                continue
            tries += 1
            if not await self._may_try_again(outcome, tries, deadline):
                raise outcome.explained(self._asked(), model)

    async def _try(
        self, body: dict[str, Any], deadline: float, seconds: float
    ) -> dict[str, Any] | Failure:
        """What becomes of one request. Raises ModelUnavailable when it is not even sent, or takes
        too long, or brings something that is no answer of such an interface."""
        import openai

        model, probe = body["model"], self._breaker.admit()
        began = self._monotonic()
        try:
            async with asyncio.timeout_at(deadline):
                answer = answer_object(await self._send(body))
        except TimeoutError:
            raise self._failed(probe, f"模型 {model} 在 {seconds:g} 秒内没有回答") from None
        except openai.APIError as error:
            # It holds the request with its headers, so it must not be chained.
            outcome = failures.of_sdk(error)
        except BaseException:
            if (waited := self._monotonic() - began) >= _PATIENCE:
                self._breaker.failed(probe, f"模型 {model} 在 {waited:.0f} 秒内没有回答")
            else:
                self._breaker.abandoned(probe)
            raise
        else:
            if answer is None:
                raise self._failed(
                    probe,
                    f"模型服务 {self._host} 返回的不是接口的回答："
                    f"请检查 {self._url_setting}（一般以 /v1 结尾）",
                )
            outcome = failures.in_success(answer) or answer
        if isinstance(outcome, Failure) and outcome.outage:
            reason = str(outcome.explained(self._asked(), model))
            self._breaker.failed(probe, reason, outcome.retry_after)
        else:
            self._breaker.succeeded()
        return outcome

    def _failed(self, probe: bool, reason: str) -> ModelUnavailable:
        self._breaker.failed(probe, reason)
        return ModelUnavailable(reason)

    async def _may_try_again(self, failure: Failure, tries: int, deadline: float) -> bool:
        """Wait for the next try; False when there is to be none."""
        if not failure.may_pass or tries >= self._max_tries or self._breaker.is_open:
            return False
        pause = failure.pause(tries)
        if asyncio.get_running_loop().time() + pause >= deadline:
            return False
        await asyncio.sleep(pause)
        return True

    async def _send(self, fields: dict[str, Any]) -> str:
        """The body of the answer. Raises the SDK's errors."""
        # Nothing but the model as parameters: the SDK walks through each message, to see if it
        # is a file, for longer than all the rest takes.
        rest = {key: value for key, value in fields.items() if key != "model"}
        answer = self._open().chat.completions.with_streaming_response.create(
            model=fields["model"], messages=[], extra_body=rest
        )
        body = await whole_body(answer, _MOST_BYTES, fields["model"])
        whole = body[:100].lstrip().startswith("{")
        if len(body) > (_LONGEST_BODY if whole else _LONGEST_STREAM):
            raise BadAnswer(f"模型 {fields['model']} 的回答长得不正常（{len(body)} 个字符）")
        return body

    def _asked(self) -> Asked:
        return Asked(
            self._host, self._api_key, self._key_setting, self._url_setting, self._model_setting
        )

    def _choice(self, answer: dict[str, Any], model: str) -> dict[str, Any]:
        choice = first_choice(answer)
        if choice is None:
            raise BadAnswer(f"模型 {model} 的回答里没有内容")
        return choice

    def _raise_told(self, answer: dict[str, Any]) -> None:
        """Raise the error that an answer tells of, whatever its status was."""
        failure = failures.in_success(answer)
        if failure is not None:
            raise failure.explained(self._asked(), self.model)


def _change(
    failure: Failure, body: Mapping[str, Any], made: frozenset[str], spare: str | None
) -> str | None:
    if not failure.about_request or failure.content_refused:
        return None
    change = providers.change_for(failure.reason, failure.param, body, made)
    if change is None and failure.status in _MALFORMED and spare not in made:
        return spare
    return change


def _names(tools: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(str(tool.get("function", {}).get("name")) for tool in tools)


def _empty(choice: Mapping[str, Any], model: str) -> BadAnswer:
    if choice.get("finish_reason") == "length":
        return BadAnswer(f"模型 {model} 还没有说出什么就到了长度上限")
    return BadAnswer(f"模型 {model} 的回答是空的")


def _host_of(url: str) -> str:
    """Host and port without credentials; empty where it is no HTTP address."""
    try:
        parts = urlsplit(url)
        _ = parts.port, (parts.hostname or "").encode("idna")  # both raise on nonsense
    except ValueError:
        return ""
    return parts.netloc.rpartition("@")[2] if parts.scheme in ("http", "https") else ""

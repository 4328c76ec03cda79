"""A request that got no completion: what it means, whether it may pass, and what to tell people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
import json
import math
import random
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import ModelError, ModelRefused, ModelUnavailable
from ..memory.units import shortened
from .answer_body import first_choice

if TYPE_CHECKING:
    import openai

_FILTER_WORDS = re.compile(
    r"content[\s_-]?(?:filter|policy|management|moderation|exists[\s_]risk)|data_?inspection"
    r"|risk_?control|high[\s_-]risk|(?<!case[\s-])sensitive|moderation|flagged"
    r"|敏感|违规|不合规|不当内容|内容安全|高风险|内容.{0,4}风险",
    re.IGNORECASE,
)
_MONEY_WORDS = re.compile(
    r"insufficient[\s_]*(?:quota|balance)|exceeded_current_quota|arrear|余额不足|欠费",
    re.IGNORECASE,
)
_MOST_TOLD = 10_000
"""Characters of what an endpoint says that are looked at."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 8.0
NO_ANSWER = 0
SUCCESS = 200


class Asked(NamedTuple):
    """The endpoint that was asked, and the settings that an error tells to look at."""

    host: str
    api_key: str
    key_setting: str
    url_setting: str
    model_setting: str


@dataclass(frozen=True, slots=True)
class Failure:
    """What became of a request."""

    status: int
    """Of HTTP, or where an error came as a success the one it names, else 200; 0: no answer."""
    reason: str
    """All that the endpoint said, or the kind of trouble with the connection."""
    param: str | None = None
    """The field that the endpoint blames."""
    retry_after: float | None = None
    """Seconds that it asks to wait."""

    @property
    def content_refused(self) -> bool:
        return self.status in (SUCCESS, 400, 403, 422) and bool(_FILTER_WORDS.search(self.reason))

    @property
    def about_request(self) -> bool:
        """The endpoint serves, but not such a request."""
        return self.status in (SUCCESS, 400, 404, 405, 413, 422, 501)

    @property
    def may_pass(self) -> bool:
        """Another try within the same call makes sense."""
        if _MONEY_WORDS.search(self.reason):
            return False
        return self.status in (NO_ANSWER, 408, 409, 429) or 500 <= self.status != 501

    @property
    def outage(self) -> bool:
        """The endpoint serves nobody, or not us."""
        return not self.content_refused and (self.status == SUCCESS or not self.about_request)

    def pause(self, tries: int) -> float:
        """Seconds to wait after so many tries: growing, and scattered so that callers who
        failed together do not come back together."""
        if self.retry_after is not None:
            return self.retry_after
        return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (tries - 1)) * random.uniform(0.75, 1.25)

    def explained(self, asked: Asked, model: str) -> ModelError:
        """What a person should know, in one line without the key."""
        host, status, reason = asked.host, self.status, self._one_line(asked.api_key)
        if self.content_refused:
            return ModelRefused(f"模型服务 {host} 拒绝了这段内容（{status}）")
        if status == NO_ANSWER:
            text = f"连不上模型服务 {host}（{reason}）：请检查网络与 {asked.url_setting}"
        elif status == 402 or _MONEY_WORDS.search(self.reason):
            text = f"模型服务 {host} 的余额不足（{status}）：请检查账户"
        elif status in (401, 403):
            text = f"模型服务 {host} 不接受密钥（{status}）：请检查 {asked.key_setting}"
        elif status == 404:
            text = (
                f"模型服务 {host} 上没有模型 {model} 或这个地址（404）："
                f"请检查 {asked.model_setting} 与 {asked.url_setting}（一般以 /v1 结尾）"
            )
        elif status == SUCCESS:
            text = f"模型服务 {host} 返回错误：{reason}"
        elif self.may_pass:
            text = f"模型服务 {host} 暂时不可用（{status}）"
        else:
            text = f"模型服务 {host} 不接受请求（{status}）：{reason}"
        return ModelUnavailable(text)

    def _one_line(self, api_key: str) -> str:
        hidden = self.reason.replace(api_key, "***") if api_key else self.reason
        return shortened(" ".join(hidden.split()), 200)


def of_sdk(error: openai.APIError) -> Failure:
    """The failure behind an error of the SDK's."""
    import openai

    if not isinstance(error, openai.APIStatusError):
        return Failure(NO_ANSWER, type(error.__cause__ or error).__name__)
    text = error.response.content.decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, (dict, list)):
        # Escapes would hide what is said in Chinese.
        text = json.dumps(body, ensure_ascii=False)
    param = _param(body.get("error", body)) if isinstance(body, dict) else None
    return Failure(error.status_code, text[:_MOST_TOLD], param, retry_after(error.response.headers))


def in_success(answer: Mapping[str, Any]) -> Failure | None:
    """The failure in an answer that came as a success; None where it holds what was asked for."""
    choice = first_choice(answer)
    if choice is not None:
        if choice.get("finish_reason") not in ("error", "network_error"):
            return None
        answer = {"error": choice.get("error") or {"code": 502, "message": "network error"}}
    elif answer.get("data"):
        return None
    told = answer.get("error")
    if not told and not {"code", "msg", "message", "detail"} & answer.keys():
        return None
    about = told if isinstance(told, dict) else answer
    status = next((s for key in ("status", "code") if (s := _status(about.get(key)))), SUCCESS)
    reason = json.dumps(told or answer, ensure_ascii=False)
    return Failure(status, reason[:_MOST_TOLD], _param(about))


def _status(value: object) -> int | None:
    """A status of HTTP that is an error; providers also give words, and numbers of their own."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) == 3:
        value = int(value)
    return value if isinstance(value, int) and 400 <= value < 600 else None


def _param(about: object) -> str | None:
    param = about.get("param") if isinstance(about, dict) else None
    return param if isinstance(param, str) else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that `Retry-After` asks to wait, given as a number or as a date (RFC 9110)."""
    for name, divisor in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / divisor
        except ValueError:
            continue
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def of_surroundings(error: Exception) -> str:
    """What keeps the SDK from even being set up: it takes proxies and certificates from the
    environment, and each of its libraries complains of a wrong one with an error of its own."""
    told = " ".join(str(error).split()) or type(error).__name__
    hint = "请检查环境变量 HTTP_PROXY、HTTPS_PROXY、ALL_PROXY 和 SSL_CERT_FILE"
    if isinstance(error, ImportError):
        hint = "要用 SOCKS 代理，请先 pip install socksio，或者改用 http:// 的代理"
    return f"连不上模型：{shortened(told, _MOST_TOLD)}；{hint}"

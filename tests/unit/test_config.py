"""Settings: blank means the default, a wrong one is one line that names it."""

from __future__ import annotations

from datetime import time
import json
import os
from pathlib import Path
import shutil
import subprocess
import sys
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
import pytest

from plugins.nonebot_plugin_nianlun.config import Config, Settings, explain
from plugins.nonebot_plugin_nianlun.llm.client import ModelClient

ROOT = Path(__file__).resolve().parents[2]


def settings(**values: Any) -> Settings:
    return Config.model_validate({"nianlun": values}).nianlun


def complaint(**values: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        settings(**values)
    return str(explain(caught.value))


def test_nothing_set_is_the_designed_product() -> None:
    found = settings()
    assert found.timezone == ZoneInfo("Asia/Shanghai")
    assert found.day_starts_at == time(4)
    assert (found.model, found.notes_model) == ("gpt-4o-mini", "")
    counts = (found.activity_messages, found.activity_messages_private)
    assert counts == (50, 20)
    assert (found.activity_min_messages, found.activity_idle_minutes) == (8, 20)
    assert (found.rollup_pending_activities, found.keep_days, found.keep_months) == (20, 7, 2)
    assert (found.prompt_budget, found.recall_budget, found.history_messages) == (6000, 800, 20)
    assert found.daily_token_limit is None
    assert found.notes_tools is False
    assert found.facts_from == "notes"
    assert found.enabled_chats == found.disabled_chats == found.api_keys == frozenset()


@pytest.mark.parametrize("blank", ["", None])
def test_blank_is_the_default_for_every_setting(blank: str | None) -> None:
    assert settings(**dict.fromkeys(Settings.model_fields, blank)) == settings()
    assert Config.model_validate({"openai_api_key": blank}).openai_api_key == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("prompt_budget", "很多"),
        ("prompt_budget", "100"),
        ("history_messages", "5"),
        ("activity_messages", "0"),
        ("keep_days", "-1"),
        ("facts_from", "everywhere"),
        ("daily_token_limit", "-1"),
        ("timezone", "Asia/Shangai"),
        ("timezone", "../../etc/passwd"),
        ("timezone", "Asia"),
        ("day_starts_at", "25:00"),
        ("day_starts_at", "13:00"),
        ("day_starts_at", "04:00:30"),
        ("day_starts_at", "四点"),
        ("day_starts_at", "04:60"),
        ("day_starts_at", "04:00+08:00"),
        ("vision_base_url", "http://[::1"),
        ("vision_base_url", "http://[fe80::1%]/v1"),
        ("vision_base_url", "http://[fe80::1%25eth0/v1"),
        ("vision_base_url", "http://[1.2.3.4%25eth0]/v1"),
        ("vision_base_url", "api.example.com/v1"),
        ("embedding_base_url", "http://a:99999/v1"),
        ("embedding_base_url", "http://\udc80/v1"),
        ("model", ["x" * 9999]),
        ("extra_body", "enable_thinking"),
        ("extra_body", "一\n二"),
    ],
)
def test_a_wrong_value_is_one_line_that_names_the_setting(key: str, value: str) -> None:
    line = complaint(**{key: value})
    assert f"NIANLUN__{key.upper()}" in line
    assert line.splitlines() == [line]
    assert len(line) < 300


def test_an_unknown_setting_is_named() -> None:
    assert "NIANLUN__PROMT_BUDGET" in complaint(promt_budget=6000)


def test_several_mistakes_are_told_at_once() -> None:
    line = complaint(promt_budget=6000, keep_days=0)
    assert "NIANLUN__PROMT_BUDGET" in line
    assert "NIANLUN__KEEP_DAYS" in line


@pytest.mark.parametrize("key", ["panel_token", "api_keys"])
def test_a_secret_is_not_repeated_in_the_complaint(key: str) -> None:
    line = complaint(**{key: {"secret": "hush-hush"}})
    assert f"NIANLUN__{key.upper()}" in line
    assert "hush" not in line


@pytest.mark.parametrize("address", ["http://[::1", "http://", "ftp://a/v1", "a/v1", "http://a b"])
def test_an_address_of_the_model_that_is_none_is_named(address: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Config.model_validate({"openai_base_url": address})
    assert str(explain(caught.value)).startswith(f"OPENAI_BASE_URL={address!r} 不对：请写成 https")


def test_a_password_in_an_address_is_not_repeated() -> None:
    with pytest.raises(ValidationError) as caught:
        Config.model_validate({"openai_base_url": "ftp://me:hush-hush@a/v1"})
    assert "hush" not in str(explain(caught.value))


def test_an_address_is_written_as_every_library_reads_it() -> None:
    config = Config.model_validate({"openai_base_url": "https://例子.中国/v 1"})
    assert config.openai_base_url == "https://xn--fsqu00a.xn--fiqs8s/v%201"


@pytest.mark.parametrize("zone", ["%eth0", "%25eth0"])
def test_a_link_local_address_keeps_its_zone(zone: str) -> None:
    address = f"http://a:b@[fe80::0:1{zone}]:8000/v1/[::%25a]"
    config = Config.model_validate({"openai_base_url": address})
    assert config.openai_base_url == "http://a:b@[fe80::1%eth0]:8000/v1/[::%25a]"
    client = ModelClient(api_key="k", base_url=config.openai_base_url, model="m")
    assert client.endpoint == "[fe80::1%eth0]:8000/v1/[::%25a]"


def test_json_that_is_nested_too_deep_is_told() -> None:
    assert "EXTRA_BODY" in str(explain(RecursionError()))


@pytest.mark.parametrize("text", ["04:00", "4:00", " 04:00 "])
def test_the_day_may_begin_at_a_time_with_or_without_a_zero(text: str) -> None:
    assert settings(day_starts_at=text).day_starts_at == time(4)


@pytest.mark.parametrize("text", ["00:00", "0:00", "11:59"])
def test_the_day_begins_before_noon(text: str) -> None:
    hour, minute = map(int, text.split(":"))
    assert settings(day_starts_at=text).day_starts_at == time(hour, minute)


@pytest.mark.parametrize(
    "value",
    [
        ["group:1", "private:2"],
        ("group:1", "private:2"),
    ],
)
def test_chats_are_any_collection(value: object) -> None:
    assert settings(enabled_chats=value).enabled_chats == {"group:1", "private:2"}


@pytest.mark.parametrize("name", ["qun:1", "group：2", "group:", "a/b/group:1", "群 1"])
def test_what_is_no_chat_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="不是会话"):
        settings(enabled_chats=["group:1", name])


@pytest.mark.parametrize("name", ["group:1", "10001/group:1", "private:2", "123"])
def test_every_form_of_a_chat_is_taken(name: str) -> None:
    assert settings(disabled_chats=[name]).disabled_chats == {name}


def test_a_single_number_is_one_chat() -> None:
    assert settings(disabled_chats=123456).disabled_chats == {"123456"}
    assert settings(disabled_chats=[123456]).disabled_chats == {"123456"}


@pytest.mark.parametrize("key", ["character", "panel_token", "model", "notes_model"])
def test_text_that_looks_like_a_number_is_text(key: str) -> None:
    assert getattr(settings(**{key: 2233}), key) == "2233"


@pytest.mark.parametrize("number", [0, 4, 14400, -1, 4.5])
def test_a_bare_number_is_no_time_of_day(number: float) -> None:
    assert "NIANLUN__DAY_STARTS_AT" in complaint(day_starts_at=number)


def test_keys_of_the_model_may_look_like_numbers() -> None:
    config = Config.model_validate({"openai_api_key": 12345, "openai_base_url": " http://x/v1 "})
    assert (config.openai_api_key, config.openai_base_url) == ("12345", "http://x/v1")


@given(st.dictionaries(st.sampled_from(sorted(Settings.model_fields)), st.text() | st.integers()))
def test_whatever_is_set_is_taken_or_explained(values: dict[str, object]) -> None:
    try:
        settings(**values)
    except ValidationError as error:
        line = str(explain(error))
        assert "NIANLUN__" in line
        assert len(line.splitlines()) == 1


PROBE = """
import json, sys
import nonebot
from nianlun.config import Config, SettingsError, explain
nonebot.init()
try:
    found = nonebot.get_plugin_config(Config).nianlun
except SettingsError as error:
    sys.exit(str(explain(error)))
print(json.dumps([found.character, sorted(found.enabled_chats), sorted(found.api_keys),
    found.extra_body, found.keep_days, str(found.day_starts_at), found.timezone.key]))
"""


def through_nonebot(
    folder: Path, dotenv: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Read settings as a bot does, in a process of its own.

    The package itself is wiring, so its configuration stands alone in another one.
    """
    package = folder / "nianlun"
    package.mkdir()
    (package / "__init__.py").touch()
    for name in ("config.py", "errors.py"):
        shutil.copy(ROOT / "plugins" / "nonebot_plugin_nianlun" / name, package)
    (folder / "probe.py").write_text(PROBE, "utf-8")
    (folder / ".env").write_text(dotenv, "utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NIANLUN")}
    return subprocess.run(
        [sys.executable, "probe.py"],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_settings_arrive_through_nonebot(tmp_path: Path) -> None:
    dotenv = (
        "NIANLUN__CHARACTER=2233\n"
        'NIANLUN__ENABLED_CHATS=["group:1", 123]\n'
        'NIANLUN__API_KEYS=["a", "b"]\n'
        'NIANLUN__EXTRA_BODY={"enable_thinking": false}\n'
        "NIANLUN__KEEP_DAYS=\n"
        "NIANLUN__DAY_STARTS_AT=5:30\n"
    )
    done = through_nonebot(tmp_path, dotenv, NIANLUN__TIMEZONE="Europe/Berlin")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [
        "2233",
        ["123", "group:1"],
        ["a", "b"],
        {"enable_thinking": False},
        7,
        "05:30:00",
        "Europe/Berlin",
    ]


@pytest.mark.parametrize("line", ["NIANLUN__ENABLED_CHATS=group:1", "NIANLUN__EXTRA_BODY=thinking"])
def test_a_list_or_object_that_is_no_json_is_named(tmp_path: Path, line: str) -> None:
    done = through_nonebot(tmp_path, line)
    assert done.returncode == 1
    assert line.partition("=")[0] in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr

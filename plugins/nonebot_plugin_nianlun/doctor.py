"""What is checked when somebody asks whether all is well, each with what to do about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
import re
import shutil
from typing import TYPE_CHECKING, Any, Literal

from nonebot import get_plugin_config

from .config import Config
from .errors import ModelError, NianlunError, StoreDamaged, StoreError, StoreLocked
from .file_sizes import file_size
from .llm.captions import new_captioner, trouble_name
from .llm.probe import Probe, probe
from .llm.writers import new_client
from .processes import runs
from .store import chats, diagnosis
from .store.connections import Connection
from .store.endpoints import Endpoints

if TYPE_CHECKING:
    from .lifecycle import Nianlun

State = Literal["ok", "look", "wrong"]
"""`look`: a person should know it, but it may be meant so."""

_LITTLE_ROOM = 200 << 20
"""Bytes that must be free whatever the size of the database."""
_CONNECTED = timedelta(minutes=2)
"""A running bot writes down every half minute which accounts are there."""
_SPENT = "ping"
GET_DATABASE = (
    "启动机器人或 bot.py import 就会有；以前有过，就检查是不是换了文件夹，"
    "以及 NIANLUN__DATABASE_URL 和 NIANLUN__DATA_DIR"
)
"""What to do where there is none."""
_RESTORE = "用 bot.py restore 备份文件 恢复；自动备份在旁边的 backups 里"
_BRING_BACK = f"停掉机器人，移开这个文件留着，再{_RESTORE}"
_SET_FREE = (
    "文件没有坏，不要移开它：关掉打开着它的数据库查看工具，等正在跑的 bot.py import、restore 做完，"
    "还不行就停掉卡住的机器人"
)
_ADVICE = re.compile(r"(.*)[：，]请(.*)", re.DOTALL)
"""What is wrong, and what an error says to do about it."""
_MODEL_SETTINGS = "检查 OPENAI_API_KEY、OPENAI_BASE_URL、NIANLUN__MODEL 和网络"
_ASK = "用 --ask-model 真问一句，要花几个 token"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    state: State
    told: str
    todo: str = ""


async def examine(nianlun: Nianlun, *, ask_model: bool) -> tuple[list[Check], list[dict[str, Any]]]:
    """All checks, and the state of each chat. Raises StoreError.

    `ask_model`: have the model say a word, which costs some tokens.
    """
    found = await diagnosis.examine(nianlun.path)
    checks = [
        _database(nianlun.path, found),
        Check("migrations", "ok", f"数据库的版本是 {found.version}，已是最新"),
        _index(found),
        await _known_trouble(nianlun) or await _model(nianlun, ask_model=ask_model),
        *await _vision(nianlun),
        *_surroundings(nianlun, found.size),
        _peers(nianlun, found),
    ]
    return checks, [] if found.damage else await _chats(nianlun)


def unopened(nianlun: Nianlun, error: StoreError) -> list[Check]:
    """The checks of a database that cannot be opened or read."""
    told, todo = _told_and_todo(error, "检查磁盘，以及这个文件和所在文件夹的权限")
    told = told.removeprefix("数据库").strip()
    if isinstance(error, StoreLocked):
        todo = _SET_FREE
    elif isinstance(error, StoreDamaged):
        todo = _BRING_BACK
    if str(nianlun.path) not in told:
        told = f"{nianlun.path.resolve()} {told}"
    return [Check("database", "wrong", told, todo), *_surroundings(nianlun)]


def _told_and_todo(error: NianlunError, otherwise: str) -> tuple[str, str]:
    advice = _ADVICE.fullmatch(str(error))
    return (advice[1], advice[2]) if advice else (str(error), otherwise)


async def without_database(nianlun: Nianlun, *, ask_model: bool) -> list[Check]:
    """The checks where there is no database. Creates none: it may only have been moved away."""
    place = nianlun.path.resolve()
    if any((place.parent / "backups").glob("*.db")):
        todo = f"把移走的文件放回去，或者{_RESTORE}"
        database = Check("database", "wrong", f"{place} 不见了，旁边还有它的备份", todo)
    else:
        told = f"还没有数据库，它会在 {place}"
        database = Check("database", "look", told, GET_DATABASE)
    return [database, await _model(nianlun, ask_model=ask_model), *_surroundings(nianlun)]


def _surroundings(nianlun: Nianlun, size: int = 0) -> list[Check]:
    return [_timezone(nianlun), _fonts(), _disk(nianlun.path, size)]


async def _chats(nianlun: Nianlun) -> list[dict[str, Any]]:
    rows = [(chats.key_of(row), row.name) for row in await chats.everyone()]
    return [
        {"chat": key.full, "name": name, **asdict(await nianlun.status(key))} for key, name in rows
    ]


def _database(path: Path, found: diagnosis.Diagnosis) -> Check:
    told = f"{path.resolve()}，{file_size(found.size)}，可以读写"
    if found.damage is not None:
        return Check("database", "wrong", f"{told}，但里面坏了：{found.damage}", _BRING_BACK)
    return Check("database", "ok", told if found.looked_through else f"{told}；太大，没有查完")


def _index(found: diagnosis.Diagnosis) -> Check:
    if not found.index_sound:
        return Check("index", "wrong", "检索的索引坏了", "运行 bot.py reindex")
    if not found.index_complete:
        todo = "机器人开着时会自己在后台补完；想马上补就运行 bot.py reindex"
        return Check("index", "look", "检索的索引还没有建完", todo)
    return Check("index", "ok", "检索的索引是完整的")


async def _known_trouble(nianlun: Nianlun) -> Check | None:
    """What the running bot found wrong: it leaves the model alone for a while, and so does this."""
    if nianlun.client is None:
        return None
    endpoint = nianlun.client.endpoint
    if trouble := await _trouble(nianlun, endpoint):
        return Check("model", "wrong", f"{endpoint}：{trouble}", _MODEL_SETTINGS)
    return None


async def _model(nianlun: Nianlun, *, ask_model: bool) -> Check:
    config = get_plugin_config(Config)
    # Remembers nothing: there may be no database.
    client = new_client(config, nianlun.clock)
    if client is None:
        told = "没有设置密钥，由离线写手来写，不聊天"
        return Check("model", "ok", told, "要用模型就在 .env 里设 OPENAI_API_KEY")
    wanted = {nianlun.settings.model, nianlun.notes_model}
    told = f"{client.endpoint} 连得上，{'、'.join(sorted(wanted))}"
    if not ask_model:
        answer = await probe(config.openai_base_url, config.openai_api_key)
        return _answered(client.endpoint, told, wanted, answer)
    try:
        await client.complete([{"role": "user", "content": _SPENT}])
    except ModelError as error:
        why, todo = _told_and_todo(error, _MODEL_SETTINGS)
        return Check("model", "wrong", f"模型没有答上来：{why}", todo)
    finally:
        await client.close()
    return Check("model", "ok", f"{told} 答上来了（花了几个 token）")


def _answered(endpoint: str, told: str, wanted: set[str], answer: Probe) -> Check:
    if answer.wrong:
        return Check("model", "wrong", f"{endpoint}：{answer.wrong}", _MODEL_SETTINGS)
    todo: list[str] = []
    if answer.unsure:
        told = f"{told}；{answer.unsure}"
        todo.append(_ASK)
    if answer.models is None:
        todo.insert(0, "检查 OPENAI_API_KEY 和 OPENAI_BASE_URL（一般以 /v1 结尾）")
    elif missing := sorted(wanted - answer.models):
        told = f"{told}；接口列出的模型里没有 {'、'.join(missing)}"
        todo.insert(0, "检查 NIANLUN__MODEL 和 NIANLUN__NOTES_MODEL")
    return Check("model", "look" if todo else "ok", told, "；".join(todo))


async def _vision(nianlun: Nianlun) -> list[Check]:
    """Nothing where no model looks at pictures."""
    captioner = new_captioner(get_plugin_config(Config))
    if captioner is None:
        return []
    told = f"{captioner.endpoint}，{captioner.model}"
    if trouble := await _trouble(nianlun, trouble_name(captioner.endpoint)):
        todo = "检查 NIANLUN__VISION_MODEL、NIANLUN__VISION_BASE_URL 和它的密钥"
        return [Check("vision", "wrong", f"{told}：{trouble}", todo)]
    return [Check("vision", "ok", told)]


async def _trouble(nianlun: Nianlun, endpoint: str) -> str | None:
    """What the running bot found wrong with the endpoint, and when."""
    told = await Endpoints().trouble(endpoint)
    return f"{nianlun.calendar.local(told[1]):%m-%d %H:%M} {told[0]}" if told else None


def _timezone(nianlun: Nianlun) -> Check:
    now = nianlun.clock.now()
    zone, begins = nianlun.settings.timezone.key, nianlun.settings.day_starts_at
    told = (
        f"{zone}，现在是 {nianlun.calendar.local(now):%Y-%m-%d %H:%M}，一天从 {begins:%H:%M} 开始"
    )
    return Check("timezone", "ok", told, "时间不对就校准系统的时钟；时区不对就改 NIANLUN__TIMEZONE")


def _fonts() -> Check:
    return Check("fonts", "ok", "画图不用系统的字体")


def _disk(path: Path, size: int) -> Check:
    folder = path.parent if path.parent.exists() else Path.cwd()
    free = shutil.disk_usage(folder).free
    told = f"还剩 {file_size(free)}"
    if free < _LITTLE_ROOM or free < 2 * size:
        todo = "腾出空间：升级、清理和备份都要再放得下一份数据库"
        return Check("disk", "wrong", told, todo)
    return Check("disk", "ok", told)


def _peers(nianlun: Nianlun, found: diagnosis.Diagnosis) -> Check:
    todo = "机器人没有开着，或 OneBot 一端没有连上：让它用反向 WebSocket 连到 /onebot/v11/ws"
    accounts = sorted({*found.peers, *found.connections})
    if not accounts:
        return Check("peers", "look", "还没有 OneBot 连上过", todo)
    now = nianlun.clock.now().astimezone(UTC)
    local = nianlun.calendar.local
    told: list[str] = []
    absent = True
    for self_id in accounts:
        connection = found.connections.get(self_id)
        connected = _is_connected(connection, now)
        if connection is None or connected is False:
            last = found.peers.get(self_id) or found.connections[self_id].heard
            told.append(f"{self_id} 最近一次在线 {local(last):%m-%d %H:%M}")
            continue
        absent = False
        until = f"{local(connection.heard):%H:%M:%S} "
        told.append(f"{self_id} 连着" if connected else f"{self_id} {until}时连着")
    return Check("peers", "look" if absent else "ok", "，".join(told), todo if absent else "")


def _is_connected(connection: Connection | None, now: datetime) -> bool | None:
    """None: as far as is known; whether the process that said so still runs cannot be told."""
    if connection is None or now - connection.heard >= _CONNECTED:
        return False
    return runs(connection.process)

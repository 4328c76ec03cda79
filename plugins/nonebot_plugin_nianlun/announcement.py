"""What the owner should know when the bot has started."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .lifecycle import Nianlun


def announcement(nianlun: Nianlun, host: str, port: int) -> list[str]:
    """A line each; `host` and `port` are what the server listens on."""
    address = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    if ":" in address:
        address = f"[{address}]"
    if nianlun.client is None:
        writer = "内置的离线写手（设置 OPENAI_API_KEY 后改用模型，并能聊天）"
    else:
        writer = f"模型 {nianlun.notes_model} "
    at = nianlun.calendar.local(nianlun.jobs.next_rollup())
    return [
        f"记忆存放在 {nianlun.path.resolve()}",
        f"请让 NapCat 等用反向 WebSocket 连接 ws://{address}:{port}/onebot/v11/ws",
        f"记忆由{writer}来写",
        f"下一次整理在 {at:%Y-%m-%d %H:%M}（{nianlun.settings.timezone.key}）",
    ]

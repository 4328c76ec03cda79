"""The model and the writer of notes that the settings ask for."""

from __future__ import annotations

from ..clock import Clock
from ..config import Config, Settings
from ..memory.calendar import Calendar
from ..memory.protocols import NoteWriter
from .client import ModelClient
from .model_writer import ModelWriter, ReportUsage
from .offline_writer import OfflineWriter
from .tool_writer import TakenBack, ToolWriter
from .traits import EndpointMemory


def new_client(
    config: Config, clock: Clock | None = None, memory: EndpointMemory | None = None
) -> ModelClient | None:
    """None without a key."""
    if not config.openai_api_key:
        return None
    return ModelClient(
        api_key=config.openai_api_key,
        base_url=config.openai_base_url,
        model=config.nianlun.model,
        extra_body=config.nianlun.extra_body,
        clock=clock,
        memory=memory,
    )


def new_writer(
    settings: Settings,
    client: ModelClient | None,
    calendar: Calendar,
    report_usage: ReportUsage,
    taken_back: TakenBack,
) -> NoteWriter:
    """One for each run of owed work."""
    if client is None:
        return OfflineWriter(calendar)
    model, facts = settings.notes_model or settings.model, settings.facts_from == "notes"
    if settings.notes_tools and client.takes_tools(model):
        return ToolWriter(client, calendar, report_usage, taken_back, model, facts=facts)
    return ModelWriter(client, calendar, report_usage, model, facts=facts)

"""The tables.

Every row belongs to one chat, and every unique constraint and index leads with it. Children
are never deleted by the database: code that removes a chat removes its rows. JSON is kept as
text with its characters unescaped, written and read by the functions beside this file.
"""

from __future__ import annotations

from typing import Any

from tortoise import fields
from tortoise.fields import NO_ACTION
from tortoise.indexes import Index
from tortoise.models import Model, ModelMeta


class Plain(ModelMeta):
    """Without comments: no start has to parse the source of every table for them."""

    def __new__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> ModelMeta:
        return super().__new__(cls, name, bases, attrs | {"_no_comments": True})


class Chat(Model, metaclass=Plain):
    """One group, private peer or named store, as seen by one bot account."""

    id: int = fields.BigIntField(primary_key=True)
    self_id = fields.CharField(max_length=64)
    kind = fields.CharField(max_length=8)
    peer_id = fields.CharField(max_length=128)
    name = fields.TextField(null=True)
    last_seq: int = fields.BigIntField(db_default=0)
    """The highest short id given out; the only place where ids are counted."""
    last_activity: int = fields.BigIntField(db_default=0)
    paused = fields.BooleanField(db_default=False)
    muted = fields.BooleanField(db_default=False)
    members_read = fields.BooleanField(null=True)
    persona = fields.TextField(null=True)
    daily_token_limit: int | None = fields.BigIntField(null=True)
    speaker_limit: int | None = fields.IntField(null=True)
    """How many people may be registered by hand in a store; None for the usual number."""
    timezone = fields.CharField(max_length=64, null=True)
    day_starts_at = fields.CharField(max_length=5, null=True)
    failures = fields.IntField(db_default=0)
    """Failed jobs in a row; the next try waits until `retry_at`."""
    last_error = fields.TextField(null=True)
    last_error_at = fields.DatetimeField(null=True)
    retry_at = fields.DatetimeField(null=True)
    created_at = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "nianlun_chat"
        unique_together = (("self_id", "kind", "peer_id"),)


class Speaker(Model, metaclass=Plain):
    """A person of a chat, keyed by QQ number."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    user_id = fields.CharField(max_length=128)
    name = fields.TextField()
    named_at = fields.DatetimeField()
    """Time of the message that showed this name, so that a late one does not bring back an old."""
    opted_out_at = fields.DatetimeField(null=True)
    registered_at = fields.DatetimeField(null=True)
    """Set for people that were registered by hand in a store; QQ members register themselves."""

    class Meta(Model.Meta):
        table = "nianlun_speaker"
        unique_together = (("chat", "user_id"),)


class SpeakerName(Model, metaclass=Plain):
    """A name that a person has or had."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    user_id = fields.CharField(max_length=128)
    name = fields.TextField()
    name_key = fields.CharField(max_length=128)
    """The name trimmed and in NFC, or its hash when longer: what names are compared by."""
    first_seen = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "nianlun_speaker_name"
        unique_together = (("chat", "user_id", "name_key"),)
        indexes = (Index(fields=("chat_id", "name_key")),)


class Activity(Model, metaclass=Plain):
    """A first-person note over a window of messages, or a diary moment without one."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    number: int = fields.BigIntField()
    date = fields.CharField(max_length=10)
    from_seq: int | None = fields.BigIntField(null=True)
    to_seq: int | None = fields.BigIntField(null=True)
    text = fields.TextField()
    key_messages = fields.TextField(db_default="[]")
    origin = fields.CharField(max_length=8)
    owner = fields.CharField(max_length=128, null=True)
    source_conv = fields.TextField(null=True)
    """Of a moment that another program wrote: the conversation that it names as its source."""
    time = fields.DatetimeField()
    version = fields.IntField(db_default=1)
    writer = fields.CharField(max_length=32)
    written_at = fields.DatetimeField()
    usage = fields.TextField(null=True)
    merged = fields.BooleanField(db_default=False)
    """Its day memory holds this version."""
    stale = fields.BooleanField(db_default=False)
    """Something it was built on was taken back; it must be written again."""

    class Meta(Model.Meta):
        table = "nianlun_activity"
        unique_together = (("chat", "number"),)
        indexes = (Index(fields=("chat_id", "date")),)


class Message(Model, metaclass=Plain):
    """One raw line."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    seq: int = fields.BigIntField()
    dedup_key = fields.CharField(max_length=255)
    """What makes two deliveries one message; see `recording.dedup_key`."""
    message_id = fields.CharField(max_length=128, null=True)
    platform_order: int | None = fields.BigIntField(null=True)
    time = fields.DatetimeField()
    user_id = fields.CharField(max_length=128)
    name = fields.TextField()
    text = fields.TextField()
    segments = fields.TextField(db_default="[]")
    reply_to_id = fields.CharField(max_length=128, null=True)
    reply_to: int | None = fields.BigIntField(null=True)
    source = fields.CharField(max_length=8)
    via = fields.CharField(max_length=8, null=True)
    delivery = fields.CharField(max_length=8, db_default="ok")
    withdrawn_at = fields.DatetimeField(null=True)
    skipped = fields.CharField(max_length=12, null=True)
    activity = fields.ForeignKeyField(
        "nianlun.Activity", on_delete=NO_ACTION, related_name=False, null=True
    )
    """The one activity whose window it is in. Neither this nor `skipped`: pending."""
    activity_id: int | None

    class Meta(Model.Meta):
        table = "nianlun_message"
        unique_together = (("chat", "seq"), ("chat", "dedup_key"))
        indexes = (
            Index(fields=("chat_id", "time", "seq")),
            Index(fields=("chat_id", "message_id")),
            Index(fields=("chat_id", "activity_id")),
        )


class Memory(Model, metaclass=Plain):
    """The current text of a day, month or year."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    kind = fields.CharField(max_length=8)
    period = fields.CharField(max_length=10)
    text = fields.TextField()
    key_messages = fields.TextField(db_default="[]")
    sources = fields.TextField(db_default="[]")
    version = fields.IntField(db_default=1)
    writer = fields.CharField(max_length=32)
    written_at = fields.DatetimeField()
    usage = fields.TextField(null=True)
    closed = fields.BooleanField(db_default=False)
    merged = fields.BooleanField(db_default=False)
    stale = fields.BooleanField(db_default=False)

    class Meta(Model.Meta):
        table = "nianlun_memory"
        unique_together = (("chat", "kind", "period"),)


class NoteVersion(Model, metaclass=Plain):
    """An earlier text of an activity, day, month or year."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    kind = fields.CharField(max_length=8)
    ref = fields.CharField(max_length=24)
    """An activity's number, or a memory's period."""
    version = fields.IntField()
    text = fields.TextField()
    key_messages = fields.TextField(db_default="[]")
    sources = fields.TextField(db_default="[]")
    writer = fields.CharField(max_length=32)
    written_at = fields.DatetimeField()
    usage = fields.TextField(null=True)
    blanked = fields.BooleanField(db_default=False)
    merged = fields.BooleanField(db_default=False)
    """The memory above held it when it was replaced."""

    class Meta(Model.Meta):
        table = "nianlun_note_version"
        unique_together = (("chat", "kind", "ref", "version"),)


class Fact(Model, metaclass=Plain):
    """What is true now, or without a name a free note."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    owner = fields.CharField(max_length=128, db_default="")
    """A speaker's user id, `me`, or empty for the chat itself."""
    category = fields.CharField(max_length=80)
    name = fields.CharField(max_length=128, null=True)
    text = fields.TextField()
    note_key = fields.CharField(max_length=64, null=True)
    """Of a note: what it has in common with all that say the same; see `memory/duplicates.py`."""
    event_date = fields.CharField(max_length=40, null=True)
    """Of a note, where it was given: the day or the moment that it tells of."""
    source: int | None = fields.BigIntField(null=True)
    due = fields.CharField(max_length=10, null=True)
    done_at = fields.DatetimeField(null=True)
    created_at = fields.DatetimeField()
    written_at = fields.DatetimeField()
    writer = fields.CharField(max_length=32, null=True)
    """Who changed its text by hand, if somebody did; `source` is still what it was taken from."""

    class Meta(Model.Meta):
        table = "nianlun_fact"
        unique_together = (("chat", "owner", "category", "name"),)
        indexes = (
            Index(fields=("chat_id", "owner", "note_key")),
            Index(fields=("chat_id", "category", "name")),
        )


class FactVersion(Model, metaclass=Plain):
    """A text that a fact had before it was updated or removed."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    fact_id: int = fields.BigIntField()
    text = fields.TextField()
    source: int | None = fields.BigIntField(null=True)
    written_at = fields.DatetimeField()
    writer = fields.CharField(max_length=32, null=True)
    due = fields.CharField(max_length=10, null=True)
    done_at = fields.DatetimeField(null=True)

    class Meta(Model.Meta):
        table = "nianlun_fact_version"
        indexes = (Index(fields=("chat_id", "fact_id")),)


class Exclusion(Model, metaclass=Plain):
    """What may not be recorded, or must be masked when it arrives late or again."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    reason = fields.CharField(max_length=12)
    """withdrawn, opted_out, paused or forgotten; of what people removed: window, moment or fact."""
    user_id = fields.CharField(max_length=128, null=True)
    message_id = fields.CharField(max_length=128, null=True)
    begins = fields.DatetimeField(null=True)
    ends = fields.DatetimeField(null=True)
    subject = fields.CharField(max_length=64, null=True)
    created_at = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "nianlun_exclusion"
        indexes = (
            Index(fields=("chat_id", "message_id")),
            Index(fields=("chat_id", "reason")),
        )


class Gap(Model, metaclass=Plain):
    """A stretch of time in which messages may have been missed."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    begins = fields.DatetimeField()
    ends = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "nianlun_gap"
        indexes = (Index(fields=("chat_id", "begins")),)


class Lease(Model, metaclass=Plain):
    """Who does a piece of owed work, and until when others must leave it alone."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    work = fields.CharField(max_length=32)
    holder = fields.CharField(max_length=64)
    expires_at = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "nianlun_lease"
        unique_together = (("chat", "work"),)


class UsageCount(Model, metaclass=Plain):
    """Model calls of a chat, by logical day, purpose and model."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    date = fields.CharField(max_length=10)
    purpose = fields.CharField(max_length=16)
    model = fields.CharField(max_length=128)
    calls = fields.IntField(db_default=0)
    failures = fields.IntField(db_default=0)
    prompt_tokens: int = fields.BigIntField(db_default=0)
    cached_tokens: int = fields.BigIntField(db_default=0)
    completion_tokens: int = fields.BigIntField(db_default=0)

    class Meta(Model.Meta):
        table = "nianlun_usage"
        unique_together = (("chat", "date", "purpose", "model"),)


class ChatLink(Model, metaclass=Plain):
    """A superuser's permission for one chat to read another."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    other_id: int = fields.BigIntField()
    linked_by = fields.CharField(max_length=128)
    created_at = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "nianlun_chat_link"
        unique_together = (("chat", "other_id"),)


class Vector(Model, metaclass=Plain):
    """What an embedding model made of a text, kept so that it is asked once."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    kind = fields.CharField(max_length=8)
    """A `SearchKind`."""
    ref: int = fields.BigIntField()
    """A message's seq, an activity's number, else the row's id."""
    model = fields.CharField(max_length=128)
    content_hash = fields.CharField(max_length=64)
    vector = fields.BinaryField()

    class Meta(Model.Meta):
        table = "nianlun_vector"
        unique_together = (("chat", "kind", "ref", "model"),)
        indexes = (Index(fields=("chat_id", "model", "content_hash")),)


class Caption(Model, metaclass=Plain):
    """What a model saw in a picture, kept so that it is asked once."""

    id: int = fields.BigIntField(primary_key=True)
    chat = fields.ForeignKeyField("nianlun.Chat", on_delete=NO_ACTION, related_name=False)
    chat_id: int
    content_hash = fields.CharField(max_length=64)
    """MD5 of its bytes: QQ names pictures after it, so one may be known before it is fetched."""
    seq: int = fields.BigIntField()
    """The message that showed it first; taken back, it takes this along."""
    text = fields.TextField()
    """Empty where the model was asked often enough and saw nothing that can be used."""

    class Meta(Model.Meta):
        table = "nianlun_caption"
        unique_together = (("chat", "content_hash"),)
        indexes = (Index(fields=("chat_id", "seq")),)


class Property(Model, metaclass=Plain):
    """Facts about the database itself, such as the version of a derived index."""

    id: int = fields.BigIntField(primary_key=True)
    key = fields.CharField(max_length=64, unique=True)
    value = fields.TextField()

    class Meta(Model.Meta):
        table = "nianlun_property"

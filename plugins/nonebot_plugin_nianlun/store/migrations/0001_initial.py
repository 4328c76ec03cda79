from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    initial = True

    operations = [
        ops.CreateModel(
            name="Chat",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                ("self_id", fields.CharField(max_length=64)),
                ("kind", fields.CharField(max_length=8)),
                ("peer_id", fields.CharField(max_length=128)),
                ("name", fields.TextField(null=True, unique=False)),
                ("last_seq", fields.BigIntField(db_default=0)),
                ("last_activity", fields.BigIntField(db_default=0)),
                ("paused", fields.BooleanField(db_default=False)),
                ("muted", fields.BooleanField(db_default=False)),
                ("members_read", fields.BooleanField(null=True)),
                ("persona", fields.TextField(null=True, unique=False)),
                ("daily_token_limit", fields.BigIntField(null=True)),
                ("timezone", fields.CharField(null=True, max_length=64)),
                ("day_starts_at", fields.CharField(null=True, max_length=5)),
                ("failures", fields.IntField(db_default=0)),
                ("last_error", fields.TextField(null=True, unique=False)),
                (
                    "last_error_at",
                    fields.DatetimeField(null=True, auto_now=False, auto_now_add=False),
                ),
                ("retry_at", fields.DatetimeField(null=True, auto_now=False, auto_now_add=False)),
                ("created_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "nianlun_chat",
                "app": "nianlun",
                "unique_together": (("self_id", "kind", "peer_id"),),
                "pk_attr": "id",
                "table_description": "One group, private peer or named store, as seen by one bot account.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Activity",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "chat",
                    fields.ForeignKeyField(
                        "nianlun.Chat",
                        source_field="chat_id",
                        db_constraint=True,
                        to_field="id",
                        related_name=False,
                        on_delete=OnDelete.NO_ACTION,
                    ),
                ),
                ("number", fields.BigIntField()),
                ("date", fields.CharField(max_length=10)),
                ("from_seq", fields.BigIntField(null=True)),
                ("to_seq", fields.BigIntField(null=True)),
                ("text", fields.TextField(unique=False)),
                ("key_messages", fields.TextField(db_default="[]", unique=False)),
                ("origin", fields.CharField(max_length=8)),
                ("owner", fields.CharField(null=True, max_length=128)),
                ("time", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("version", fields.IntField(db_default=1)),
                ("writer", fields.CharField(max_length=32)),
                ("written_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("usage", fields.TextField(null=True, unique=False)),
                ("merged", fields.BooleanField(db_default=False)),
                ("stale", fields.BooleanField(db_default=False)),
            ],
            options={
                "table": "nianlun_activity",
                "app": "nianlun",
                "unique_together": (("chat", "number"),),
                "indexes": [Index(fields=["chat_id", "date"])],
                "pk_attr": "id",
                "table_description": "A first-person note over a window of messages, or a diary moment without one.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="ChatLink",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "chat",
                    fields.ForeignKeyField(
                        "nianlun.Chat",
                        source_field="chat_id",
                        db_constraint=True,
                        to_field="id",
                        related_name=False,
                        on_delete=OnDelete.NO_ACTION,
                    ),
                ),
                ("other_id", fields.BigIntField()),
                ("linked_by", fields.CharField(max_length=128)),
                ("created_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "nianlun_chat_link",
                "app": "nianlun",
                "unique_together": (("chat", "other_id"),),
                "pk_attr": "id",
                "table_description": "A superuser's permission for one chat to read another.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Exclusion",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "chat",
                    fields.ForeignKeyField(
                        "nianlun.Chat",
                        source_field="chat_id",
                        db_constraint=True,
                        to_field="id",
                        related_name=False,
                        on_delete=OnDelete.NO_ACTION,
                    ),
                ),
                ("reason", fields.CharField(max_length=12)),
                ("user_id", fields.CharField(null=True, max_length=128)),
                ("message_id", fields.CharField(null=True, max_length=128)),
                ("begins", fields.DatetimeField(null=True, auto_now=False, auto_now_add=False)),
                ("ends", fields.DatetimeField(null=True, auto_now=False, auto_now_add=False)),
                ("created_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "nianlun_exclusion",
                "app": "nianlun",
                "indexes": [
                    Index(fields=["chat_id", "message_id"]),
                    Index(fields=["chat_id", "reason"]),
                ],
                "pk_attr": "id",
                "table_description": "What may not be recorded, or must be masked when it arrives late or again.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Fact",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "chat",
                    fields.ForeignKeyField(
                        "nianlun.Chat",
                        source_field="chat_id",
                        db_constraint=True,
                        to_field="id",
                        related_name=False,
                        on_delete=OnDelete.NO_ACTION,
                    ),
                ),
                ("owner", fields.CharField(db_default="", max_length=128)),
                ("category", fields.CharField(max_length=80)),
                ("name", fields.CharField(null=True, max_length=128)),
                ("text", fields.TextField(unique=False)),
                ("source", fields.BigIntField(null=True)),
                ("due", fields.CharField(null=True, max_length=10)),
                ("done_at", fields.DatetimeField(null=True, auto_now=False, auto_now_add=False)),
                ("created_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("written_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "nianlun_fact",
                "app": "nianlun",
                "unique_together": (("chat", "owner", "category", "name"),),
                "pk_attr": "id",
                "table_description": "What is true now, or without a name a free note.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="FactVersion",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "chat",
                    fields.ForeignKeyField(
                        "nianlun.Chat",
                        source_field="chat_id",
                        db_constraint=True,
                        to_field="id",
                        related_name=False,
                        on_delete=OnDelete.NO_ACTION,
                    ),
                ),
                ("fact_id", fields.BigIntField()),
                ("text", fields.TextField(unique=False)),
                ("source", fields.BigIntField(null=True)),
                ("written_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "nianlun_fact_version",
                "app": "nianlun",
                "indexes": [Index(fields=["chat_id", "fact_id"])],
                "pk_attr": "id",
                "table_description": "A text that a fact had before it was updated or removed.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Gap",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "chat",
                    fields.ForeignKeyField(
                        "nianlun.Chat",
                        source_field="chat_id",
                        db_constraint=True,
                        to_field="id",
                        related_name=False,
                        on_delete=OnDelete.NO_ACTION,
                    ),
                ),
                ("begins", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("ends", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "nianlun_gap",
                "app": "nianlun",
                "indexes": [Index(fields=["chat_id", "begins"])],
                "pk_attr": "id",
                "table_description": "A stretch of time in which messages may have been missed.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Lease",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "chat",
                    fields.ForeignKeyField(
                        "nianlun.Chat",
                        source_field="chat_id",
                        db_constraint=True,
                        to_field="id",
                        related_name=False,
                        on_delete=OnDelete.NO_ACTION,
                    ),
                ),
                ("work", fields.CharField(max_length=32)),
                ("holder", fields.CharField(max_length=64)),
                ("expires_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "nianlun_lease",
                "app": "nianlun",
                "unique_together": (("chat", "work"),),
                "pk_attr": "id",
                "table_description": "Who does a piece of owed work, and until when others must leave it alone.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Memory",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "chat",
                    fields.ForeignKeyField(
                        "nianlun.Chat",
                        source_field="chat_id",
                        db_constraint=True,
                        to_field="id",
                        related_name=False,
                        on_delete=OnDelete.NO_ACTION,
                    ),
                ),
                ("kind", fields.CharField(max_length=8)),
                ("period", fields.CharField(max_length=10)),
                ("text", fields.TextField(unique=False)),
                ("key_messages", fields.TextField(db_default="[]", unique=False)),
                ("sources", fields.TextField(db_default="[]", unique=False)),
                ("version", fields.IntField(db_default=1)),
                ("writer", fields.CharField(max_length=32)),
                ("written_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("usage", fields.TextField(null=True, unique=False)),
                ("closed", fields.BooleanField(db_default=False)),
                ("merged", fields.BooleanField(db_default=False)),
                ("stale", fields.BooleanField(db_default=False)),
            ],
            options={
                "table": "nianlun_memory",
                "app": "nianlun",
                "unique_together": (("chat", "kind", "period"),),
                "pk_attr": "id",
                "table_description": "The current text of a day, month or year.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "chat",
                    fields.ForeignKeyField(
                        "nianlun.Chat",
                        source_field="chat_id",
                        db_constraint=True,
                        to_field="id",
                        related_name=False,
                        on_delete=OnDelete.NO_ACTION,
                    ),
                ),
                ("seq", fields.BigIntField()),
                ("dedup_key", fields.CharField(max_length=255)),
                ("message_id", fields.CharField(null=True, max_length=128)),
                ("platform_order", fields.BigIntField(null=True)),
                ("time", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("user_id", fields.CharField(max_length=128)),
                ("name", fields.TextField(unique=False)),
                ("text", fields.TextField(unique=False)),
                ("segments", fields.TextField(db_default="[]", unique=False)),
                ("reply_to_id", fields.CharField(null=True, max_length=128)),
                ("reply_to", fields.BigIntField(null=True)),
                ("source", fields.CharField(max_length=8)),
                ("via", fields.CharField(null=True, max_length=8)),
                ("delivery", fields.CharField(db_default="ok", max_length=8)),
                (
                    "withdrawn_at",
                    fields.DatetimeField(null=True, auto_now=False, auto_now_add=False),
                ),
                ("skipped", fields.CharField(null=True, max_length=12)),
                (
                    "activity",
                    fields.ForeignKeyField(
                        "nianlun.Activity",
                        source_field="activity_id",
                        null=True,
                        db_constraint=True,
                        to_field="id",
                        related_name=False,
                        on_delete=OnDelete.NO_ACTION,
                    ),
                ),
            ],
            options={
                "table": "nianlun_message",
                "app": "nianlun",
                "unique_together": (("chat", "seq"), ("chat", "dedup_key")),
                "indexes": [
                    Index(fields=["chat_id", "time", "seq"]),
                    Index(fields=["chat_id", "message_id"]),
                    Index(fields=["chat_id", "activity_id"]),
                ],
                "pk_attr": "id",
                "table_description": "One raw line.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="NoteVersion",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "chat",
                    fields.ForeignKeyField(
                        "nianlun.Chat",
                        source_field="chat_id",
                        db_constraint=True,
                        to_field="id",
                        related_name=False,
                        on_delete=OnDelete.NO_ACTION,
                    ),
                ),
                ("kind", fields.CharField(max_length=8)),
                ("ref", fields.CharField(max_length=24)),
                ("version", fields.IntField()),
                ("text", fields.TextField(unique=False)),
                ("key_messages", fields.TextField(db_default="[]", unique=False)),
                ("sources", fields.TextField(db_default="[]", unique=False)),
                ("writer", fields.CharField(max_length=32)),
                ("written_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("usage", fields.TextField(null=True, unique=False)),
                ("blanked", fields.BooleanField(db_default=False)),
            ],
            options={
                "table": "nianlun_note_version",
                "app": "nianlun",
                "unique_together": (("chat", "kind", "ref", "version"),),
                "pk_attr": "id",
                "table_description": "An earlier text of an activity, day, month or year.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Property",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                ("key", fields.CharField(unique=True, max_length=64)),
                ("value", fields.TextField(unique=False)),
            ],
            options={
                "table": "nianlun_property",
                "app": "nianlun",
                "pk_attr": "id",
                "table_description": "Facts about the database itself, such as the version of a derived index.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Speaker",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "chat",
                    fields.ForeignKeyField(
                        "nianlun.Chat",
                        source_field="chat_id",
                        db_constraint=True,
                        to_field="id",
                        related_name=False,
                        on_delete=OnDelete.NO_ACTION,
                    ),
                ),
                ("user_id", fields.CharField(max_length=128)),
                ("name", fields.TextField(unique=False)),
                ("named_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                (
                    "opted_out_at",
                    fields.DatetimeField(null=True, auto_now=False, auto_now_add=False),
                ),
                (
                    "registered_at",
                    fields.DatetimeField(null=True, auto_now=False, auto_now_add=False),
                ),
            ],
            options={
                "table": "nianlun_speaker",
                "app": "nianlun",
                "unique_together": (("chat", "user_id"),),
                "pk_attr": "id",
                "table_description": "A person of a chat, keyed by QQ number.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="SpeakerName",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "chat",
                    fields.ForeignKeyField(
                        "nianlun.Chat",
                        source_field="chat_id",
                        db_constraint=True,
                        to_field="id",
                        related_name=False,
                        on_delete=OnDelete.NO_ACTION,
                    ),
                ),
                ("user_id", fields.CharField(max_length=128)),
                ("name", fields.TextField(unique=False)),
                ("name_key", fields.CharField(max_length=128)),
                ("first_seen", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "nianlun_speaker_name",
                "app": "nianlun",
                "unique_together": (("chat", "user_id", "name_key"),),
                "indexes": [Index(fields=["chat_id", "name_key"])],
                "pk_attr": "id",
                "table_description": "A name that a person has or had.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="UsageCount",
            fields=[
                (
                    "id",
                    fields.BigIntField(
                        generated=True, primary_key=True, unique=True, db_index=True
                    ),
                ),
                (
                    "chat",
                    fields.ForeignKeyField(
                        "nianlun.Chat",
                        source_field="chat_id",
                        db_constraint=True,
                        to_field="id",
                        related_name=False,
                        on_delete=OnDelete.NO_ACTION,
                    ),
                ),
                ("date", fields.CharField(max_length=10)),
                ("purpose", fields.CharField(max_length=16)),
                ("model", fields.CharField(max_length=128)),
                ("calls", fields.IntField(db_default=0)),
                ("failures", fields.IntField(db_default=0)),
                ("prompt_tokens", fields.BigIntField(db_default=0)),
                ("cached_tokens", fields.BigIntField(db_default=0)),
                ("completion_tokens", fields.BigIntField(db_default=0)),
            ],
            options={
                "table": "nianlun_usage",
                "app": "nianlun",
                "unique_together": (("chat", "date", "purpose", "model"),),
                "pk_attr": "id",
                "table_description": "Model calls of a chat, by logical day, purpose and model.",
            },
            bases=["Model"],
        ),
    ]

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("nianlun", "0001_initial")]

    operations = [
        ops.CreateModel(
            name="Vector",
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
                ("ref", fields.BigIntField()),
                ("model", fields.CharField(max_length=128)),
                ("content_hash", fields.CharField(max_length=64)),
                ("vector", fields.BinaryField()),
            ],
            options={
                "table": "nianlun_vector",
                "app": "nianlun",
                "unique_together": (("chat", "kind", "ref", "model"),),
                "indexes": [Index(fields=["chat_id", "model", "content_hash"])],
                "pk_attr": "id",
                "table_description": "What an embedding model made of a text, kept so that it is asked once.",
            },
            bases=["Model"],
        ),
        ops.AddField(model_name="Chat", name="speaker_limit", field=fields.IntField(null=True)),
    ]

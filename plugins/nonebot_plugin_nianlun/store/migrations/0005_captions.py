from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("nianlun", "0004_diary")]

    operations = [
        ops.CreateModel(
            name="Caption",
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
                ("content_hash", fields.CharField(max_length=64)),
                ("seq", fields.BigIntField()),
                ("text", fields.TextField()),
            ],
            options={
                "table": "nianlun_caption",
                "app": "nianlun",
                "unique_together": (("chat", "content_hash"),),
                "indexes": [Index(fields=["chat_id", "seq"])],
                "pk_attr": "id",
                "table_description": "What a model saw in a picture, kept so that it is asked once.",
            },
            bases=["Model"],
        ),
    ]

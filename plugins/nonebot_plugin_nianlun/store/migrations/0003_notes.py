from tortoise import fields, migrations
from tortoise.indexes import Index
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("nianlun", "0002_search")]

    operations = [
        ops.AddField(
            model_name="Fact", name="note_key", field=fields.CharField(null=True, max_length=64)
        ),
        ops.AddField(
            model_name="Fact", name="event_date", field=fields.CharField(null=True, max_length=40)
        ),
        ops.AddIndex(model_name="Fact", index=Index(fields=["chat_id", "owner", "note_key"])),
    ]

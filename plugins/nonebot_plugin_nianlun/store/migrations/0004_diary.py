from tortoise import fields, migrations
from tortoise.indexes import Index
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("nianlun", "0003_notes")]

    operations = [
        ops.AddField(model_name="Activity", name="source_conv", field=fields.TextField(null=True)),
        ops.AddIndex(model_name="Fact", index=Index(fields=["chat_id", "category", "name"])),
    ]

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("nianlun", "0006_removals")]

    operations = [
        ops.AddField(
            model_name="Fact", name="writer", field=fields.CharField(null=True, max_length=32)
        ),
        ops.AddField(
            model_name="FactVersion",
            name="writer",
            field=fields.CharField(null=True, max_length=32),
        ),
        ops.AddField(
            model_name="FactVersion", name="due", field=fields.CharField(null=True, max_length=10)
        ),
        ops.AddField(
            model_name="FactVersion",
            name="done_at",
            field=fields.DatetimeField(null=True, auto_now=False, auto_now_add=False),
        ),
    ]

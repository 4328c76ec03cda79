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
    ]

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("nianlun", "0005_captions")]

    operations = [
        ops.AddField(
            model_name="Exclusion", name="subject", field=fields.CharField(null=True, max_length=64)
        ),
        ops.AddField(
            model_name="NoteVersion", name="merged", field=fields.BooleanField(db_default=False)
        ),
    ]

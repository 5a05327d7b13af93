from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Heartbeat",
            fields=[
                ("part", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("beat_at", models.DateTimeField()),
                ("is_ok", models.BooleanField(default=True)),
                ("detail", models.JSONField(default=dict)),
            ],
            options={"verbose_name": "heartbeat"},
        ),
    ]

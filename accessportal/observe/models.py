"""When each part of the portal last showed that it is alive. Rebuildable: every row is rewritten within minutes."""

from __future__ import annotations

from django.db import models


class Heartbeat(models.Model):
    """``beat_at`` is the last sign of life of ``part``; ``detail`` what it reported then; ``is_ok`` whether it succeeded."""

    part = models.CharField(primary_key=True, max_length=40)
    beat_at = models.DateTimeField()
    is_ok = models.BooleanField(default=True)
    detail = models.JSONField(default=dict)

    class Meta:
        verbose_name = "heartbeat"

    def __str__(self) -> str:
        return f"{self.part} at {self.beat_at:%Y-%m-%d %H:%M:%S}"

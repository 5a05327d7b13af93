"""The catalog's rows: a read model of the cloud that a sync can rebuild at any time.

``*_key`` columns hold the case-folded form that is compared; ``search_text`` everything that a search looks at.
"""

from __future__ import annotations

from django.db import models


class SyncRun(models.Model):
    """One attempt at reading everything. Complete when ``finished_at`` is set and ``error`` is empty."""

    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)
    accounts = models.PositiveIntegerField(default=0)
    permission_sets = models.PositiveIntegerField(default=0)
    principals = models.PositiveIntegerField(default=0)
    instance_arn = models.CharField(max_length=1224, blank=True)
    identity_store_id = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return f"{self.started_at:%Y-%m-%d %H:%M:%S} {self.error or 'complete' if self.finished_at else 'unfinished'}"


class CatalogRow(models.Model):
    """``seen_in`` is the run that last saw the thing: what the newest complete run did not see is deleted."""

    seen_in = models.ForeignKey(SyncRun, on_delete=models.PROTECT, related_name="+", db_index=False)

    class Meta:
        abstract = True


class AccountRow(CatalogRow):
    """``tags`` is null when they could not be read (never an empty map for that)."""

    account_id = models.CharField(max_length=12, primary_key=True)
    name = models.CharField(max_length=255)
    name_key = models.CharField(max_length=255, db_index=True)
    email = models.CharField(max_length=255, blank=True)
    status = models.CharField(max_length=32)
    ou_path = models.TextField()
    ou_key = models.TextField()
    tags = models.JSONField(null=True)
    is_management = models.BooleanField()
    search_text = models.TextField()

    def __str__(self) -> str:
        return f"{self.name} ({self.account_id})"


class PermissionSetRow(CatalogRow):
    arn = models.CharField(max_length=1224, primary_key=True)
    name = models.CharField(max_length=64, db_index=True)
    name_key = models.CharField(max_length=64, db_index=True)
    description = models.TextField(blank=True)
    session_seconds = models.PositiveIntegerField()
    search_text = models.TextField()

    def __str__(self) -> str:
        return self.name


class PrincipalRow(CatalogRow):
    """``label_key`` is the folded address of a user, the unchanged display name of a group."""

    principal_id = models.CharField(max_length=64, primary_key=True)
    principal_type = models.CharField(max_length=8)
    label = models.CharField(max_length=1024)
    label_key = models.CharField(max_length=1024, db_index=True)

    def __str__(self) -> str:
        return f"{self.principal_type.lower()} {self.label}"

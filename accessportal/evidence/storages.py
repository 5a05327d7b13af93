"""Django storages in which a file is written once: ``STORAGES["evidence"]`` is one of them."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from django.core.files.base import File
from django.core.files.storage import FileSystemStorage
from storages.backends.s3 import S3Storage

from accessportal.aws.errors import OutsideError, sorted_call

_NO_LOCK = "ObjectLockConfigurationNotFoundError"
_IN_MEMORY_BYTES = 1 << 20


class WriteOnce(Protocol):
    """What the room asks of its storage."""

    def save(self, name: str, content: File[Any]) -> str:
        """:raises FileExistsError: for a name that is there."""
        ...

    def open(self, name: str, mode: str = "rb") -> File[Any]:
        """:raises FileNotFoundError:"""
        ...

    def listdir(self, path: str) -> tuple[list[str], list[str]]: ...

    def written_over(self) -> list[str]: ...

    def lock_flaw(self) -> str:
        """Why nothing keeps a file from being deleted; empty when something does."""
        ...


class WriteOnceFolder(FileSystemStorage):
    """A folder. A file is there whole or not at all, whenever its writer dies."""

    def written_over(self) -> list[str]:
        return []

    def lock_flaw(self) -> str:
        return "A folder has no lock: whoever may write there can take evidence away."

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name

    def _save(self, name: str, content: File[Any]) -> str:
        path = Path(self.path(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            with draft.open("xb") as file:
                for chunk in content.chunks():
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, path)
        finally:
            with suppress(FileNotFoundError):
                draft.unlink()
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return name


class WriteOnceBucket(S3Storage):  # type: ignore[misc]  # django-storages has no types
    """A bucket, of which the first version of each name counts: S3 refuses us a name that is there; whoever else writes over it, or deletes
    it, only adds a version; and with ``lock_days`` the first stays, whoever asks."""

    lock_days = 0

    def __init__(self, *, lock_days: int = 0, **options: Any) -> None:
        super().__init__(**options, file_overwrite=True, querystring_auth=True)
        self.lock_days = lock_days

    def listdir(self, path: str) -> tuple[list[str], list[str]]:
        prefix = f"{self._normalize_name(path)}/"
        names = {one["Key"].removeprefix(prefix) for one in self._entries("Versions", prefix)}
        return [], sorted(name for name in names if "/" not in name)

    def written_over(self) -> list[str]:
        prefix = f"{self.location.strip('/')}/".lstrip("/")
        versions, markers = ([one["Key"] for one in self._entries(kind, prefix)] for kind in ("Versions", "DeleteMarkers"))
        names = {name for name, count in Counter(versions).items() if count > 1} | set(markers)
        return sorted(name.removeprefix(prefix) for name in names)

    def lock_flaw(self) -> str:
        try:
            told = sorted_call(self.bucket.meta.client.get_object_lock_configuration, Bucket=self.bucket_name)
        except OutsideError as error:
            if error.code != _NO_LOCK:
                return f"Whether the bucket {self.bucket_name} has object lock is not known ({error})."
            told = {}
        if not told:
            return f"The bucket {self.bucket_name} has no object lock: whoever may delete in it can take evidence away."
        kept = told["ObjectLockConfiguration"].get("Rule", {}).get("DefaultRetention", {})
        if self.lock_days or kept.get("Mode") == "COMPLIANCE":
            return ""
        return f"PORTAL_EVIDENCE_LOCK_DAYS is 0, and the bucket {self.bucket_name} keeps nothing in compliance mode by itself."

    def _open(self, name: str, mode: str = "rb") -> File[Any]:
        first = self._first_version(name)
        if first is None:
            raise FileNotFoundError(name)
        found = sorted_call(self.bucket.Object(self._normalize_name(name)).get, VersionId=first)
        content = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115  (whoever opens it closes it)
        sorted_call(shutil.copyfileobj, found["Body"], content)
        content.seek(0)
        return File(content, name)

    def _save(self, name: str, content: File[Any]) -> str:
        # Where its first version is hidden by a mark of deletion, S3 would take the name.
        if self._first_version(name) is not None:
            raise FileExistsError(name)
        lock: dict[str, Any] = {}
        if self.lock_days:
            until = datetime.now(UTC) + timedelta(days=self.lock_days)
            lock = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": until}
        write = self.bucket.Object(self._normalize_name(name)).put
        content.seek(0)
        try:
            sorted_call(write, Body=content, IfNoneMatch="*", ContentType="application/octet-stream", **self.object_parameters, **lock)
        except OutsideError as error:
            if error.code == "PreconditionFailed":
                raise FileExistsError(name) from error
            raise
        return name

    def _first_version(self, name: str) -> str | None:
        key = self._normalize_name(name)
        found = [one["VersionId"] for one in self._entries("Versions", key) if one["Key"] == key]
        return found[-1] if found else None

    def _entries(self, kind: str, prefix: str) -> Iterator[dict[str, Any]]:
        """By name, and of each name the newest first."""
        pages = iter(self.bucket.meta.client.get_paginator("list_object_versions").paginate(Bucket=self.bucket_name, Prefix=prefix))
        while page := sorted_call(next, pages, None):
            yield from page.get(kind, ())

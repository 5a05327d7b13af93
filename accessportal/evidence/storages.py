"""Django storages in which a file is written once: ``STORAGES["evidence"]`` is one of them."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.files.base import File
from django.core.files.storage import FileSystemStorage
from storages.backends.s3 import S3Storage

from accessportal.aws.errors import OutsideError, sorted_call


class WriteOnceFolder(FileSystemStorage):
    """A folder. A file is there whole or not at all, whenever its writer dies."""

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
    """A bucket. S3 itself refuses a name that is there, and with ``lock_days`` deleting it too, whoever asks."""

    lock_days = 0

    def __init__(self, *, lock_days: int = 0, **options: Any) -> None:
        super().__init__(**options, file_overwrite=True, querystring_auth=True)
        self.lock_days = lock_days

    def _save(self, name: str, content: File[Any]) -> str:
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

"""Where evidence lies."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from django.core.files.storage import storages

from accessportal.evidence import policy
from accessportal.evidence.storages import WriteOnce, WriteOnceBucket
from accessportal.evidence.store import EvidenceFiles

__all__ = ["EvidenceFiles", "evidence_files", "on_this_machine"]


def evidence_files() -> EvidenceFiles:
    """The files in ``STORAGES["evidence"]``, which is there where an installation has set a key of evidence."""
    return EvidenceFiles(cast("WriteOnce", storages["evidence"]))


@contextmanager
def on_this_machine(place: str) -> Iterator[tuple[Path, list[str]]]:
    """A folder, or a copy of ``s3://bucket/prefix``: of each name the first version. And every name that somebody has written over
    or deleted since.

    :raises InvalidRequest: for an address that names no bucket.
    :raises Unavailable: when S3 does not answer.
    """
    if not place.startswith("s3://"):
        yield Path(place), []
        return
    name, prefix = policy.bucket_of(place)
    files = EvidenceFiles(WriteOnceBucket(bucket_name=name, location=prefix))
    with tempfile.TemporaryDirectory() as folder:
        files.copy_to(Path(folder))
        yield Path(folder), files.written_over()

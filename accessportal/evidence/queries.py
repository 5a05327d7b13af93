"""Where evidence lies."""

from __future__ import annotations

from django.core.files.storage import storages

from accessportal.evidence.store import EvidenceFiles

__all__ = ["EvidenceFiles", "evidence_files"]


def evidence_files() -> EvidenceFiles:
    """The files in ``STORAGES["evidence"]``, which is there where an installation has set a key of evidence."""
    return EvidenceFiles(storages["evidence"])

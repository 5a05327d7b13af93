"""An audit log that grows day by day, and a folder into which it is exported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from accessportal.audit import config
from accessportal.audit.config import AuditKeys
from accessportal.audit.operations import prepare_event
from accessportal.audit.states import Draft
from accessportal.evidence import config as evidence_config
from accessportal.evidence.config import Signer, read_key
from accessportal.evidence.operations import export
from accessportal.evidence.queries import EvidenceFiles
from accessportal.evidence.states import ExportReport
from accessportal.evidence.storages import WriteOnceFolder
from accessportal.evidence.verify_evidence import Verdict, verify
from accessportal.jobs import tasks
from accessportal.kernel.actors import person, system
from accessportal.kernel.pseudonyms import Pseudonyms
from accessportal.store.transactions import transact
from tests.conftest import START, FakeClock

SIGNER = read_key("A" * 43 + "=")
OTHER = read_key("B" * 42 + "A=")
KEYS = AuditKeys({"k1": b"1" * 32}, pseudonyms=Pseudonyms(b"p" * 32))
DAY = timedelta(days=1)
TODAY = START.date()


@dataclass
class Office:
    """People at work from ``START`` on. ``chains``: where each entity's has come to."""

    clock: FakeClock
    folder: Path
    signer: Signer = SIGNER
    chains: dict[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def files(self) -> EvidenceFiles:
        return EvidenceFiles(WriteOnceFolder(location=self.folder))

    def write(self, entity: str, *, at: datetime | None = None, reason: str = "ünïcödé ☂") -> None:
        """One more event of ``entity``."""
        sequence, head = self.chains.get(entity, (0, ""))
        draft = Draft("request.denied", "alice@example.com", {"reason": reason, "status": "DENIED"})
        bob = person("bob@example.com")
        event = prepare_event(draft, entity=entity, sequence=sequence + 1, prev_hash=head, actor=bob, now=at or self.clock.now())
        transact([event.step])
        self.chains[entity] = sequence + 1, event.head

    def work(self, days: int) -> None:
        """So many days, with three events each; then it is ten in the morning of the day after."""
        for _ in range(days):
            for number in range(3):
                self.write(f"request#{number}")
                self.clock.advance(60)
            self.clock.advance(24 * 3600 - 180)

    def export(self, day: date | None = None) -> ExportReport:
        return export(files=self.files, signer=self.signer, day=day, actor=system("test"), clock=self.clock)

    def verify(self, *, keys: AuditKeys | None = KEYS, last_day: date | None = None, public_keys: Sequence[bytes] = ()) -> Verdict:
        pems = public_keys or [self.signer.public_key.encode()]
        return verify(self.folder, public_keys=pems, audit_keys=keys.secrets if keys else None, last_day=last_day)

    def breaks(self) -> list[str]:
        return [str(one) for one in self.verify().breaks]

    def bytes_by_name(self) -> dict[str, bytes]:
        paths = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}


@pytest.fixture
def office(tables: None, clock: FakeClock, tmp_path: Path) -> Iterator[Office]:
    before = config.current()
    config.configure(KEYS)
    yield Office(clock, tmp_path / "evidence")
    config.configure(before)


@pytest.fixture
def installed(office: Office, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    """An installation that exports to a folder."""
    backend = "accessportal.evidence.storages.WriteOnceFolder"
    settings.STORAGES = settings.STORAGES | {"evidence": {"BACKEND": backend, "OPTIONS": {"location": str(office.folder)}}}
    monkeypatch.setattr("accessportal.commands.base.SystemClock", lambda: office.clock)
    monkeypatch.setattr(tasks, "_CLOCK", office.clock)
    evidence_config.configure(SIGNER)
    yield office
    evidence_config.configure(None)

"""What cleaning does to a row, without a provider."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from accessportal.kernel.actors import system
from accessportal.sandboxes.operations.handing import make_free
from accessportal.sandboxes.operations.shared import told, unheld
from accessportal.sandboxes.states import Sandbox, Status
from accessportal.sandboxes.store import rows

CLEAN = system("clean_sandboxes")


def free_again(sandbox: Sandbox, *, now: datetime) -> Sandbox:
    after = unheld(sandbox, Status.AVAILABLE)
    draft = told("sandbox.cleaned", after, status=after.status.value)
    return make_free(after, partial(rows.change, sandbox, after, draft=draft, actor=CLEAN, now=now), actor=CLEAN, now=now)

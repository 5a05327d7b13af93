"""Running a command as a terminal or a script would."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

from django.core.management import CommandError, call_command


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command printed and how it ended: 0 done, 1 refused or failed, 2 bad usage. ``problem`` is its line on stderr."""

    code: int
    out: str
    problem: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def run(name: str, *arguments: str) -> Ran:
    out = io.StringIO()
    try:
        call_command(name, *arguments, stdout=out, stderr=io.StringIO())
    except CommandError as error:
        return Ran(error.returncode, out.getvalue(), str(error))
    return Ran(0, out.getvalue(), "")

"""How the portal reaches PostgreSQL, from the one address that is set."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
TELL = "import json; from accessportal.settings import DATABASES; print(json.dumps(DATABASES['default']))"


def database_of(url: str) -> dict[str, Any]:
    given = {"PORTAL_SECRET_KEY": "a-secret-for-tests-alone", "PORTAL_DATABASE_URL": url, "PATH": ""}
    said = subprocess.run([sys.executable, "-c", TELL], cwd=ROOT, env=given, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(said.stdout)
    return told


def test_a_host_that_is_gone_is_noticed_in_seconds_and_a_connection_is_looked_at_before_it_is_used() -> None:
    found = database_of("postgres://portal:secret@db.example.com/portal")

    assert (found["HOST"], found["CONN_MAX_AGE"], found["CONN_HEALTH_CHECKS"]) == ("db.example.com", 60, True)
    assert found["OPTIONS"] == {
        "connect_timeout": 5,
        "tcp_user_timeout": 10_000,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
    }


def test_what_the_address_itself_says_counts() -> None:
    options = database_of("postgres://portal:secret@db.example.com/portal?sslmode=verify-full&connect_timeout=2")["OPTIONS"]

    assert (options["sslmode"], int(options["connect_timeout"]), options["keepalives_count"]) == ("verify-full", 2, 3)

"""Settings for the tests: the same code as everywhere, with a database of its own for each worker and fixed secrets."""

from __future__ import annotations

import os

ON_POSTGRES = os.environ.get("PORTAL_TESTS_ON_POSTGRES") == "1"

os.environ.update(
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",
    AWS_REGION="eu-central-1",
    AWS_DEFAULT_REGION="eu-central-1",
    PORTAL_SECRET_KEY="a-secret-for-tests-alone-" * 3,
    PORTAL_DEMO="true",
    PORTAL_PSEUDONYM_KEY="cHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHA=",
    PORTAL_SECURE="false",
    # Never opened: each worker's database is another file (tests/conftest.py). `make postgres` brings a server that is thrown away.
    PORTAL_DATABASE_URL=os.environ["PORTAL_DATABASE_URL"] if ON_POSTGRES else "sqlite:///unused.sqlite3",
    PORTAL_ALLOWED_HOSTS="testserver,localhost,127.0.0.1",
    # Stories jump over hours while people stay at their desks; tests/identity sets the limits that it is about.
    PORTAL_SESSION_IDLE_MINUTES="10080",
    PORTAL_SESSION_HOURS="168",
    # Stories ask hundreds of times at one moment; tests/access_requests/test_limits.py sets the limits that it is about.
    PORTAL_ASKS_PER_MINUTE="0",
    PORTAL_MOST_OPEN_REQUESTS="0",
)
os.environ.pop("AWS_ENDPOINT_URL", None)

from accessportal.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Every test client has middleware of its own, which would look through all static files first.
WHITENOISE_AUTOREFRESH = True
if not ON_POSTGRES:
    # Its file is thrown away in any case: nothing is gained by waiting for the disk.
    DATABASES["default"]["OPTIONS"]["init_command"] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"  # noqa: F405

"""What ``runportal`` gives every process it starts: one environment that can only ever reach the local twin.

Imported by ``manage.py`` before Django reads its settings, so it needs nothing but the standard library.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import secrets
import shlex
import socket
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent.parent / ".portal"
ENV_FILE = HOME / "env"
LOCK_FILE = HOME / "lock"
REGION = "eu-central-1"
# Where the twin's sandbox provider begins; said again because nothing may be imported here.
PROVIDER_PATH = "/twin/provider"
START_PATH = "/twin/start"
# Below those that a system hands out by itself (Linux from 32768, others from 49152): what is free here stays so until it is bound.
_PORTS = range(20_000, 32_000)
_SHARED = ("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def take_environment(environ: MutableMapping[str, str] = os.environ, *, home: Path = HOME) -> None:
    """Turn ``environ`` into the demo's: the twin's address, a kept secret key, demo sign-in on. Every ``AWS_`` variable of the caller is
    dropped first: a profile or a session token in it would lead the demo to a real account."""
    for name in [name for name in environ if name.startswith("AWS_")]:
        del environ[name]
    home.mkdir(mode=0o700, exist_ok=True)
    twin_url = f"http://127.0.0.1:{free_port()}"
    environ.update(
        AWS_ENDPOINT_URL=twin_url,
        AWS_REGION=REGION,
        AWS_DEFAULT_REGION=REGION,
        # Not secrets: the twin takes any.
        AWS_ACCESS_KEY_ID="local-twin",
        AWS_SECRET_ACCESS_KEY="local-twin",  # noqa: S106
        AWS_EC2_METADATA_DISABLED="true",
        # Whatever the caller's environment names: the demo deletes sandboxes.
        PORTAL_SANDBOX_PROVIDER_URL=f"{twin_url}{PROVIDER_PATH}",
        PORTAL_SANDBOX_PROVIDER_TOKEN="",
        PORTAL_AWS_START_URL=f"{twin_url}{START_PATH}",
        PORTAL_DEMO="true",
        PORTAL_SECURE="false",
    )
    environ.setdefault("PORTAL_SECRET_KEY", kept_secret(home / "secret-key", length=50))
    environ.setdefault("PORTAL_PSEUDONYM_KEY", _kept_key(home / "pseudonym-key"))
    environ.setdefault("PORTAL_AUDIT_KEYS", f"demo:{_kept_key(home / 'audit-key')}")
    if not {"PORTAL_EVIDENCE_KEY", "PORTAL_EVIDENCE_KMS_SIGNING_KEY"} & set(environ):
        environ["PORTAL_EVIDENCE_KEY"] = _kept_key(home / "evidence-key")
    if not {"PORTAL_EVIDENCE_DIR", "PORTAL_EVIDENCE_BUCKET"} & set(environ):
        environ["PORTAL_EVIDENCE_DIR"] = str(home / "evidence")
    environ.setdefault("PORTAL_DATABASE_URL", f"sqlite:///{home / 'portal.sqlite3'}")
    environ.setdefault("PORTAL_LOG_JSON", "false")
    # The twin does twice what is sent twice, since it knows no client request tokens; on a busy machine an answer takes seconds.
    environ.setdefault("PORTAL_DYNAMODB_READ_SECONDS", "30")


def kept_secret(path: Path, *, length: int, value: str = "") -> str:
    """The secret in ``path``; the first time ``value`` or ``length`` random characters. Readable by its owner alone."""
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write((value or secrets.token_urlsafe(length)[:length]) + "\n")
    return path.read_text().strip()


def _kept_key(path: Path) -> str:
    """32 bytes in base64, kept."""
    return kept_secret(path, length=0, value=base64.b64encode(secrets.token_bytes(32)).decode())


def free_port() -> int:
    """A port of this machine that nobody listens on, and that no connection gets meanwhile."""
    return next(port for port in secrets.SystemRandom().sample(_PORTS, len(_PORTS)) if is_port_free("127.0.0.1", port))


def is_port_free(host: str, port: int) -> bool:
    try:
        with socket.create_server((host, port)):
            return True
    except OSError:
        return False


def published_file(environ: Mapping[str, str], *, home: Path = HOME) -> Path | None:
    """Return ``.portal/env`` while the portal that wrote it is up, for whoever has no settings of their own; a file that a killed portal
    left must not turn another installation into a demo."""
    if any(name.upper().startswith("PORTAL_") for name in environ):
        return None
    file = home / ENV_FILE.name
    return file if file.exists() and _is_held(home / LOCK_FILE.name) else None


def _is_held(lock_file: Path) -> bool:
    """Whether ``runportal``, or a process that it started, holds its lock."""
    try:
        with lock_file.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


@contextlib.contextmanager
def published(environ: Mapping[str, str], *, path: Path = ENV_FILE) -> Iterator[None]:
    """Tell other terminals by ``.portal/env`` where the twin and the database are, while this lasts: no later command is sent to a twin
    that is dead."""
    names = [name for name in environ if name in _SHARED or (name.startswith("PORTAL_") and name != "PORTAL_DEMO_PASSWORD")]
    fresh = path.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.writelines(f"{name}={shlex.quote(environ[name])}\n" for name in sorted(names))
    fresh.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)

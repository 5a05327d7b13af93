"""One HTTP call to AWS, as the journal keeps it, and moto's own server application that answers it."""

from __future__ import annotations

import base64
import io
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.common_types import TYPE_RESPONSE
from moto.core.exceptions import HTTPException
from moto.core.utils import utcnow
from moto.dynamodb.responses import DynamoHandler
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.utilities.utils import get_partition
from werkzeug.http import http_date

from accessportal.twin.protocol import Answer

DYNAMODB_PREFIX = "DynamoDB_20120810."
ITEM_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
_READ = re.compile(r"(Admin)?(Get|List|Describe|BatchGet|Query|Scan|TransactGet|IsMember|Search|Head|Lookup)")
_SCOPE = re.compile(r"Credential=[^/]{1,128}/[^/]{1,32}/([^/]{1,64})/([^/]{1,64})/")
_SIGNATURE = re.compile(r"Signature=[0-9a-f]+")
# What neither moto nor a replay needs, or what should not lie in a file.
_LEFT_OUT = frozenset({"HTTP_CONNECTION", "HTTP_USER_AGENT", "HTTP_ACCEPT_ENCODING", "HTTP_X_AMZ_SECURITY_TOKEN"})


@dataclass(frozen=True, slots=True)
class Call:
    """What moto needs of a request to answer it, now or at a replay. ``headers`` have WSGI's names."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @classmethod
    def from_environ(cls, environ: dict[str, Any]) -> Call:
        """Read the request of a WSGI server, body and all."""
        length = int(environ.get("CONTENT_LENGTH") or 0)
        headers = {name: str(value) for name, value in environ.items() if name.startswith("HTTP_") and name not in _LEFT_OUT}
        headers = {name: value for name, value in headers.items() if not name.startswith("HTTP_AMZ_SDK_")}
        if "HTTP_AUTHORIZATION" in headers:
            headers["HTTP_AUTHORIZATION"] = _SIGNATURE.sub("Signature=0", headers["HTTP_AUTHORIZATION"])
        if environ.get("CONTENT_TYPE"):
            headers["CONTENT_TYPE"] = environ["CONTENT_TYPE"]
        body = environ["wsgi.input"].read(length) if length else b""
        return cls(environ["REQUEST_METHOD"], environ.get("PATH_INFO", "/"), environ.get("QUERY_STRING", ""), headers, body)

    @property
    def target(self) -> str:
        """The ``X-Amz-Target`` header of the JSON protocols, or empty."""
        return self.headers.get("HTTP_X_AMZ_TARGET", "")

    @property
    def operation(self) -> str:
        """AWS's name of the operation, or empty when the call does not name it (S3)."""
        if self.target:
            return self.target.rpartition(".")[2]
        if self.headers.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
            return parse_qs(self.body.decode(errors="replace")).get("Action", [""])[0]
        return ""

    @property
    def service(self) -> tuple[str, str]:
        """Signing name and region, from the signature."""
        found = _SCOPE.search(self.headers.get("HTTP_AUTHORIZATION", ""))
        return (found[2], found[1]) if found else ("", "")

    @property
    def reads(self) -> bool:
        """True when the call changes nothing."""
        if self.operation:
            return _READ.match(self.operation) is not None
        return self.method in {"GET", "HEAD", "OPTIONS"}

    @property
    def writes_items(self) -> bool:
        return self.target.startswith("DynamoDB_2012") and self.operation in ITEM_WRITES

    def payload(self) -> dict[str, Any]:
        """The body of a JSON protocol."""
        value: dict[str, Any] = json.loads(self.body or b"{}")
        return value

    def to_json(self) -> dict[str, Any]:
        kept = {"method": self.method, "path": self.path, "query": self.query, "headers": self.headers}
        try:
            return kept | {"body": self.body.decode()}
        except UnicodeDecodeError:
            return kept | {"body64": base64.b64encode(self.body).decode()}

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Call:
        body = base64.b64decode(kept["body64"]) if "body64" in kept else kept["body"].encode()
        return cls(kept["method"], kept["path"], kept["query"], kept["headers"], body)


class StraightDynamoDB(DynamoHandler):
    """moto's DynamoDB without the way there: matching of addresses, and a request of a web server made of ours, cost a third of a call."""

    def answer_straight(self, target: str, body: bytes, *, region: str) -> TYPE_RESPONSE:
        """Answer one call, as moto's server does. The caller holds the lock."""
        self.headers = {"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.0"}
        self.response_headers = {"server": "amazon.com", "date": http_date(utcnow())}
        self.querystring = {}
        self.region = region
        self.partition = get_partition(region)
        self.current_account = self.access_key = DEFAULT_ACCOUNT_ID
        self.params = json.loads(body)
        try:
            answer: TYPE_RESPONSE = self.call_action()
        except HTTPException as refused:
            return refused.code or 500, dict(refused.get_headers()), refused.get_body()
        return answer


class MotoCaller:
    """moto's server application, called in this process. The caller holds the lock: moto is not thread-safe."""

    def __init__(self) -> None:
        self._application = DomainDispatcherApplication(create_backend_app)

    def answer(self, call: Call) -> Answer:
        if call.target.startswith(DYNAMODB_PREFIX):
            code, told, text = StraightDynamoDB().answer_straight(call.target, call.body, region=call.service[1])
            return Answer(code, {name: str(value) for name, value in told.items()}, text.encode() if isinstance(text, str) else text)
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], _error: Any = None) -> None:
            started.append((status, headers))

        parts: Iterable[bytes] = self._application(_environ(call), start_response)
        body = b"".join(parts)
        status, headers = started[-1]
        return Answer(int(status[:3]), dict(headers), body)


def _environ(call: Call) -> dict[str, Any]:
    host = call.headers.get("HTTP_HOST", "localhost")
    return {
        "REQUEST_METHOD": call.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": call.path,
        "QUERY_STRING": call.query,
        "SERVER_NAME": host.partition(":")[0],
        "SERVER_PORT": host.partition(":")[2] or "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_LENGTH": str(len(call.body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(call.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    } | call.headers

"""The files of evidence for auditors, as they lie in their store."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_safe

from accessportal.console.resource import Right
from accessportal.console.resources.evidence import day_of
from accessportal.evidence import config
from accessportal.evidence.days import FILES
from accessportal.evidence.queries import evidence_files
from accessportal.identity.middleware import actor_of
from accessportal.kernel.errors import NotFound

_BLOCK_BYTES = 1 << 16


@require_safe
def download(request: HttpRequest, key: str, what: str) -> HttpResponseBase:
    """The ``events`` or the ``digest`` of a day. :raises NotFound: :raises Unavailable: also when it is missing."""
    Right.READERS.require(actor_of(request))
    if config.current() is None or what not in FILES:
        raise NotFound("There is no such file of evidence.", code="no_such_file")
    name = FILES[what](day_of(key))
    blocks = _blocks(name)
    # What can't be opened is told before anything is sent.
    first = next(blocks, b"")
    kind = "application/json" if name.endswith(".json") else "application/gzip"
    response = StreamingHttpResponse(chain((first,), blocks), content_type=kind)
    response.headers["Content-Disposition"] = f'attachment; filename="{name.replace("/", "-")}"'
    return response


def _blocks(name: str) -> Iterator[bytes]:
    with evidence_files().opened(name) as file:
        while block := file.read(_BLOCK_BYTES):
            yield block

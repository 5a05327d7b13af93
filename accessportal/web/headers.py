"""Headers that Django works on before any middleware is asked, some of them for longer than their length is worth."""

from __future__ import annotations

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.utils.http import parse_header_parameters

# Twice what a server takes in one header. Browsers send one; of several, which a program may send, the server makes one.
_LONGEST_COOKIES = 16_384
# To unquote a value, Python takes the square of its length. Our own with quotes, of messages, has at most 2,048 characters.
_MOST_QUOTED = 4_096
# What is decoded in one pass. Others take the square of the body's length (punycode), or are for no text and fail (base64).
_CHARSETS = frozenset({"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1"})
# Django refuses forms in it, and finds none of the parts of a form with files.
_NOT_FOR_FORMS = "charset=iso-8859-1"


def judged(application: WSGIApplication) -> WSGIApplication:
    """``application``, which gets neither cookies that no browser keeps nor a character set that nobody writes."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        for name, judge in (("HTTP_COOKIE", _cookies), ("CONTENT_TYPE", _content_type)):
            if given := environ.get(name):
                environ[name] = judge(given)
        return application(environ, start_response)

    return answer


def _cookies(given: str) -> str:
    kept, quoted = [], 0
    for cookie in given[:_LONGEST_COOKIES].split(";"):
        if "\\" in cookie:
            quoted += len(cookie)
        if "\\" not in cookie or quoted <= _MOST_QUOTED:
            kept.append(cookie)
    return ";".join(kept)


def _content_type(given: str) -> str:
    # With a star a value names a character set of its own. Python keeps every name that it was ever asked for, so none is looked up.
    kind, parameters = (given.partition(";")[0], {"charset": ""}) if "*" in given else parse_header_parameters(given)
    return given if str(parameters.get("charset", "utf-8")).lower() in _CHARSETS else f"{kind}; {_NOT_FOR_FORMS}"

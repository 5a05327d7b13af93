"""Outside errors, sorted once: transient (try again), busy (another job runs), gone (not found), refused (everything else)."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ParamValidationError
from botocore.parsers import ResponseParserError

from accessportal.kernel.errors import Unavailable

P = ParamSpec("P")
R = TypeVar("R")

_THROTTLING = frozenset(
    {"ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded", "SlowDown", "KMSThrottling"}
    | {"KmsThrottlingException", "ExecutionLimitExceeded"}
)
_BUSY = frozenset({"ConflictException", "ConcurrentModificationException"})
_GONE = frozenset(
    {"ResourceNotFoundException", "AccountNotFoundException", "EntityNotFoundException", "UserNotFoundException", "NotFound"}
    | {"ChildNotFoundException", "ExecutionDoesNotExist"}
)
_TRANSIENT = frozenset(
    {"InternalServerException", "ServiceException", "ServiceUnavailable", "InternalFailure", "RequestTimeout", "RequestTimeoutException"}
)


class OutsideError(Exception):
    """A call to AWS failed. ``code`` is AWS's own word for it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Transient(OutsideError):
    """Throttled, 5xx or no answer. For a lost answer the call may have taken effect."""


class Throttled(Transient):
    """The service asks for fewer calls; this one had no effect."""


class Busy(OutsideError):
    """Another job runs on the same thing; this call had no effect."""


class Gone(OutsideError):
    """What the call names does not exist."""


class Refused(OutsideError):
    """AWS will not do it as asked; trying the same again helps only after something outside changed."""


def sorted_call(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Call ``function`` and raise its botocore error as one of the classes above."""
    try:
        return function(*args, **kwargs)
    except ClientError as error:
        raise sort_error(error) from error
    except (NoCredentialsError, ParamValidationError) as error:
        raise Refused(type(error).__name__, str(error)) from error
    except (BotoCoreError, ResponseParserError) as error:
        raise Transient(type(error).__name__, str(error)) from error
    except Unavailable as error:
        raise Transient(error.code, error.message) from error
    except LookupError as error:
        # botocore's, of XML that is no answer of the service's (a page of a proxy).
        raise Transient("answer_garbled", f"The answer has no {error}") from error


def sort_error(error: ClientError) -> OutsideError:
    code = error.response.get("Error", {}).get("Code", "Unknown")
    message = error.response.get("Error", {}).get("Message", "") or str(error)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _THROTTLING or status == 429:
        return Throttled(code, message)
    if code in _BUSY:
        return Busy(code, message)
    if str(error.response.get("Reason", "")).startswith("KMS_"):
        # What was not found is the key that the data is encrypted with, not what the call names.
        return Refused(code, message)
    if error.response.get("ResourceType") == "IDENTITY_STORE":
        # The whole store is not found: from the wrong region or account that says nothing of who is in it.
        return Refused(code, message)
    if code in _GONE:
        return Gone(code, message)
    if code in _TRANSIENT or status >= 500:
        return Transient(code, message)
    return Refused(code, message)

"""What came back from AWS, judged before anybody reads it."""

from __future__ import annotations

import json
from typing import Any

from accessportal.kernel.errors import NoAnswer

_LAST_GOOD_STATUS = 299


def refuse_garbled(*, operation_model: Any, response_dict: dict[str, Any], **_: object) -> None:
    """Refuse an answer that is no JSON object (a proxy's page, half an answer), which botocore takes for an empty one: an absent item, a
    write that was done. :raises NoAnswer: when it says that all is well."""
    body: bytes = response_dict["body"]
    is_told_anything = operation_model.output_shape is not None and bool(operation_model.output_shape.members)
    if _is_object(body) or not (body or is_told_anything):
        return
    if response_dict["status_code"] <= _LAST_GOOD_STATUS:
        message = "What came back is no answer of AWS. Whether anything was done is not known; try again."
        raise NoAnswer(message, code="answer_garbled")
    # The status says enough, and is tried again where that helps.
    response_dict["body"] = b""


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False

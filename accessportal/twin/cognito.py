"""What Cognito does to its clients besides answering: it throttles, breaks, loses answers, and is away."""

from __future__ import annotations

import random
from collections.abc import Callable

from accessportal.twin.protocol import Answer, LostAnswerError, TwinError
from accessportal.twin.settings import TwinSettings

TARGET_PREFIX = "AWSCognitoIdentityProviderService."


class CognitoFaults:
    """Stands before moto's Cognito, under the caller's lock. ``settings`` may change at any time."""

    def __init__(self, settings: TwinSettings) -> None:
        self._settings = settings
        self._random = random.Random(settings.seed)

    def answer(self, operation: str, _body: bytes, forward: Callable[[], Answer]) -> Answer:
        """Answer one call as moto does, or make the trouble that the settings ask for. Raises ``LostAnswerError`` when the client is to get
        no answer: after the call took effect, or (an outage) without."""
        if self._settings.cognito_outage:
            raise LostAnswerError(operation)
        if self._happens(self._settings.cognito_throttle):
            return TwinError("TooManyRequestsException", "Rate exceeded").answer()
        if self._happens(self._settings.cognito_server_error):
            return TwinError("InternalErrorException", "Something went wrong", status=500).answer()
        answer = forward()
        if self._happens(self._settings.cognito_lose_answer):
            raise LostAnswerError(operation)
        return answer

    def reseed(self) -> None:
        """Start the random source anew from ``settings.seed``."""
        self._random.seed(self._settings.seed)

    def _happens(self, chance: float) -> bool:
        return chance > 0 and self._random.random() < chance

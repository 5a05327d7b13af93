"""Trouble by chance, the same again from the same seed."""

from __future__ import annotations

import random

from accessportal.twin.settings import TwinSettings


class Chances:
    """What makes trouble as often as its ``settings`` ask for, which may change at any time."""

    def __init__(self, settings: TwinSettings) -> None:
        self.settings = settings
        self._random = random.Random(settings.seed)

    def reseed(self) -> None:
        """Start the random source anew from ``settings.seed``."""
        self._random.seed(self.settings.seed)

    def _happens(self, chance: float) -> bool:
        return chance > 0 and self._random.random() < chance

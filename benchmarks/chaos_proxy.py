"""A TCP proxy that fails when it is told to: what a broken network, or a service in trouble, looks like to a client."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import random
import threading
from collections.abc import Coroutine
from typing import Any, Self

_HOST = "127.0.0.1"
_CHUNK_BYTES = 65_536
_ORDER_SECONDS = 10.0


class Mode(enum.Enum):
    """What happens to connections and to what is sent over them, at once and also to those that are open."""

    PASS = "pass"
    """Everything goes through."""
    REFUSE = "refuse"
    """Nobody listens, and open connections are cut."""
    HANG = "hang"
    """Connections are taken, and nothing goes through. What was sent meanwhile arrives when that ends, as after a network's trouble."""
    SLOW = "slow"
    """Every answer comes so many seconds later."""
    DROP = "drop"
    """What was asked arrives; of some answers nothing comes back, and the connection is cut."""


class Proxy:
    """Between clients of ``port`` and ``target_port`` of this machine, while it is entered. In ``DROP`` it loses ``drop_share`` of the
    answers."""

    def __init__(self, target_port: int, *, slow_seconds: float = 1.0, drop_share: float = 0.3, seed: int = 1) -> None:
        self.port = 0
        self._target_port = target_port
        self._slow_seconds = slow_seconds
        self._drop_share = drop_share
        self._chance = random.Random(seed)
        self._mode = Mode.PASS
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._moves = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        self._order(self._set(Mode.PASS))
        return self

    def __exit__(self, *_error: object) -> None:
        self._order(self._refuse())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self.port}"

    def set(self, mode: Mode) -> None:
        """From any thread: it holds when this returns."""
        self._order(self._set(mode))

    def _order(self, done: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(done, self._loop).result(_ORDER_SECONDS)

    async def _set(self, mode: Mode) -> None:
        self._mode = mode
        if mode is Mode.REFUSE:
            await self._refuse()
            return
        if mode is Mode.HANG:
            self._moves.clear()
        else:
            self._moves.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._connect, _HOST, self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        # What was closed just now ends at the loop's next turn, which must come before its last.
        await asyncio.sleep(0)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._carry(reader, writer)
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Both ways, until one side closes."""
        answers, questions = await asyncio.open_connection(_HOST, self._target_port)
        link = _Link()
        ways = [
            asyncio.ensure_future(self._carry_questions(link, reader, questions)),
            asyncio.ensure_future(self._carry_answers(link, answers, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            # Not cut: what a client sent before it gave up still arrives. Before the wait, which may be cancelled.
            questions.close()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _carry_questions(self, link: _Link, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while part := await source.read(_CHUNK_BYTES):
            await self._moves.wait()
            link.is_answer_due = True
            target.write(part)
            await target.drain()

    async def _carry_answers(self, link: _Link, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while part := await source.read(_CHUNK_BYTES):
            if link.is_answer_due:
                link.is_answer_due = False
                if self._mode is Mode.SLOW:
                    await asyncio.sleep(self._slow_seconds)
                if self._mode is Mode.DROP and self._chance.random() < self._drop_share:
                    return
            await self._moves.wait()
            target.write(part)
            await target.drain()


class _Link:
    """One connection through the proxy. ``is_answer_due``: something was asked, and nothing has come back yet."""

    is_answer_due = False

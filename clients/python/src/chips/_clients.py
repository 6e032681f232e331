"""The two clients. Made by `tools/surface.py` from the operations of `chips._core`: change those, not this file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence

from chips._drive import AsyncDriver, SyncDriver
from chips.outcome import Outcome
from chips.types import (
    AnsweredEvent,
    Answers,
    Ask,
    AskEvent,
    AskRef,
    AsksPage,
    Event,
    EventsPage,
    EventType,
    Me,
    OnNoAnswer,
    Position,
    Question,
    Run,
    Stored,
)

__all__ = ["AsyncClient", "Client"]


class Client(SyncDriver):
    """Asks people, and waits for them in the calling thread. Safe to share between threads."""

    def me(self) -> Me:
        """Who the token speaks for, in which workspace, and how much of its budget is used."""
        return self._drive(self._ops.me())

    def open_run(
        self,
        title: str | None = None,
        *,
        run_id: str | None = None,
        space: str | None = None,
        url: str | None = None,
        labels: Mapping[str, str] | None = None,
        parent: Run | str | None = None,
        lease_seconds: float | None = None,
    ) -> Run:
        """Opens a run: one piece of work, to which asks belong.

        `title` is what people call it, `url` (http or https) where to look at it, `labels` at most 16 texts, for which
        `chips.here()` is a good start. With `lease_seconds` its open asks are shown apart once nothing was heard of the
        run for so long. `run_id` (`chips.new_run_id()`) makes it the same run again after a restart of your program.
        """
        return self._drive(
            self._ops.open_run(
                title,
                run_id=run_id,
                space=space,
                url=url,
                labels=labels,
                parent=parent,
                lease_seconds=lease_seconds,
            )
        )

    def get_run(
        self,
        run: Run | str,
    ) -> Run:
        """The run as it stands."""
        return self._drive(self._ops.get_run(run))

    def end_run(
        self,
        run: Run | str,
    ) -> Run:
        """Ends the run. Its open asks close as withdrawn. Ending it twice does nothing."""
        return self._drive(self._ops.end_run(run))

    def ask(
        self,
        questions: Question | Sequence[Question],
        *,
        run: Run | str | None = None,
        timeout_seconds: float | None = None,
        on_no_answer: OnNoAnswer | None = None,
        ask_id: str | None = None,
        idempotency_key: str | None = None,
        agent: str | None = None,
    ) -> Stored[AskEvent]:
        """Asks people one to four questions, and returns as soon as the ask is in the log.

        Without `timeout_seconds` it stays open until somebody answers. With it, Chips closes the ask when that time has
        passed, and `on_no_answer` says what you do then. The same bytes are sent again for as long as the network or the
        server fails, so there is never a second ask. `ask_id` (`chips.new_ask_id()`) makes it the same ask again after a
        restart of your program. `agent` is the id of the agent that asks through this harness.

        Raises `InvalidEvent` with every fault, `OverBudget`, `RunEnded`, `Unreachable`.
        """
        return self._drive(
            self._ops.ask(
                questions,
                run=run,
                timeout_seconds=timeout_seconds,
                on_no_answer=on_no_answer,
                ask_id=ask_id,
                idempotency_key=idempotency_key,
                agent=agent,
            )
        )

    def get_ask(
        self,
        ask: AskRef,
    ) -> Ask:
        """The ask as it stands."""
        return self._drive(self._ops.get_ask(ask))

    def wait(
        self,
        ask: AskRef,
        *,
        timeout: float | None = None,
    ) -> Outcome:
        """Waits until the ask is closed, for ever unless told otherwise: over restarts of the server and dead networks.

        `timeout` is how long you are willing to wait, in seconds; it does not touch the ask. When it passes, `StillOpen`
        is raised, which is nobody's answer. Returns `Answered`, `Settled`, `TimedOut` or `Withdrawn`.
        """
        return self._drive(self._ops.wait(ask, timeout=timeout))

    def ask_and_wait(
        self,
        questions: Question | Sequence[Question],
        *,
        run: Run | str | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        timeout_seconds: float | None = None,
        on_no_answer: OnNoAnswer | None = None,
        ask_id: str | None = None,
        agent: str | None = None,
        wait_timeout: float | None = None,
    ) -> Outcome:
        """Asks and waits until the ask is closed, for ever unless told otherwise.

        Without `run` (and without a run of the client, or `CHIPS_RUN`) it opens one of its own, called `title` and with
        `labels`, and ends it after. Interrupted, or past `wait_timeout` (`StillOpen`), the ask stays open: the same call
        with the same `ask_id` takes it up again, `withdraw` takes it back.
        """
        return self._drive(
            self._ops.ask_and_wait(
                questions,
                run=run,
                title=title,
                labels=labels,
                timeout_seconds=timeout_seconds,
                on_no_answer=on_no_answer,
                ask_id=ask_id,
                agent=agent,
                wait_timeout=wait_timeout,
            )
        )

    def answer(
        self,
        ask: AskRef,
        answers: Answers,
        *,
        idempotency_key: str | None = None,
    ) -> Stored[AnsweredEvent]:
        """Answers as a person, with a person's token. Values by question id, or `Answer`s.

        Raises `AlreadyClosed` where somebody was first, `InvalidEvent` where the answer does not fit the question.
        """
        return self._drive(self._ops.answer(ask, answers, idempotency_key=idempotency_key))

    def settle(
        self,
        ask: AskRef,
        answers: Answers,
        *,
        timed_out: bool = False,
        agent: str | None = None,
        idempotency_key: str | None = None,
    ) -> Stored[AnsweredEvent]:
        """Answers your own question, because it was answered in your own tools.

        `timed_out` says that nobody answered there either, and that these are the defaults you took.
        """
        return self._drive(
            self._ops.settle(
                ask,
                answers,
                timed_out=timed_out,
                agent=agent,
                idempotency_key=idempotency_key,
            )
        )

    def withdraw(
        self,
        ask: AskRef,
        *,
        agent: str | None = None,
        idempotency_key: str | None = None,
    ) -> Stored[AnsweredEvent]:
        """Takes your own question back. Raises `AlreadyClosed`, with what closed it, where somebody was first."""
        return self._drive(self._ops.withdraw(ask, agent=agent, idempotency_key=idempotency_key))

    def acknowledge(
        self,
        ask: AskRef | Outcome,
    ) -> Ask:
        """Says that you have acted on the answer. The first time stands."""
        return self._drive(self._ops.acknowledge(ask))

    def asks(
        self,
        *,
        state: str | None = None,
        space: str | None = None,
        run: Run | str | None = None,
        harness: str | None = None,
        label: str | None = None,
        q: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> AsksPage:
        """A page of asks.

        `state` is one state, `open` or `closed`; `label` is `key:value`; `q` is text to look for; `before` is the `next`
        of the page before. Open asks come with the most urgent first, others newest first.
        """
        return self._drive(
            self._ops.asks(
                state=state,
                space=space,
                run=run,
                harness=harness,
                label=label,
                q=q,
                limit=limit,
                before=before,
            )
        )

    def events(
        self,
        *,
        after: int = 0,
        log: str | None = None,
        limit: int | None = None,
        type: EventType | None = None,
        run: Run | str | None = None,
        ask: AskRef | None = None,
    ) -> EventsPage:
        """A page of the log, in the order of `seq`. Raises `CursorLost` where `log` is another history than the server's."""
        return self._drive(self._ops.events(after=after, log=log, limit=limit, type=type, run=run, ask=ask))

    def head(self) -> Position:
        """Where the log ends now: hand it to `stream` to read what comes from here on."""
        return self._drive(self._ops.head())

    def stream(
        self,
        *,
        after: Position | int | None = None,
        type: EventType | None = None,
        run: Run | str | None = None,
        ask: AskRef | None = None,
    ) -> Generator[Event, None, None]:
        """The log as it grows, each event once and in order, over restarts of the server and dead networks.

        Starts after `after` (a `seq`, or a `Position`), else with what comes from now on. To go on in another process,
        keep the `log` of `head()` and the `seq` of the last event that you have dealt with. Raises `CursorLost` where
        the log was restored meanwhile, rather than skip anything.
        """
        return self._iterate(self._ops.stream(after=after, type=type, run=run, ask=ask))


class AsyncClient(AsyncDriver):
    """Asks people, and waits for them on the running event loop."""

    async def me(self) -> Me:
        """Who the token speaks for, in which workspace, and how much of its budget is used."""
        return await self._drive(self._ops.me())

    async def open_run(
        self,
        title: str | None = None,
        *,
        run_id: str | None = None,
        space: str | None = None,
        url: str | None = None,
        labels: Mapping[str, str] | None = None,
        parent: Run | str | None = None,
        lease_seconds: float | None = None,
    ) -> Run:
        """Opens a run: one piece of work, to which asks belong.

        `title` is what people call it, `url` (http or https) where to look at it, `labels` at most 16 texts, for which
        `chips.here()` is a good start. With `lease_seconds` its open asks are shown apart once nothing was heard of the
        run for so long. `run_id` (`chips.new_run_id()`) makes it the same run again after a restart of your program.
        """
        return await self._drive(
            self._ops.open_run(
                title,
                run_id=run_id,
                space=space,
                url=url,
                labels=labels,
                parent=parent,
                lease_seconds=lease_seconds,
            )
        )

    async def get_run(
        self,
        run: Run | str,
    ) -> Run:
        """The run as it stands."""
        return await self._drive(self._ops.get_run(run))

    async def end_run(
        self,
        run: Run | str,
    ) -> Run:
        """Ends the run. Its open asks close as withdrawn. Ending it twice does nothing."""
        return await self._drive(self._ops.end_run(run))

    async def ask(
        self,
        questions: Question | Sequence[Question],
        *,
        run: Run | str | None = None,
        timeout_seconds: float | None = None,
        on_no_answer: OnNoAnswer | None = None,
        ask_id: str | None = None,
        idempotency_key: str | None = None,
        agent: str | None = None,
    ) -> Stored[AskEvent]:
        """Asks people one to four questions, and returns as soon as the ask is in the log.

        Without `timeout_seconds` it stays open until somebody answers. With it, Chips closes the ask when that time has
        passed, and `on_no_answer` says what you do then. The same bytes are sent again for as long as the network or the
        server fails, so there is never a second ask. `ask_id` (`chips.new_ask_id()`) makes it the same ask again after a
        restart of your program. `agent` is the id of the agent that asks through this harness.

        Raises `InvalidEvent` with every fault, `OverBudget`, `RunEnded`, `Unreachable`.
        """
        return await self._drive(
            self._ops.ask(
                questions,
                run=run,
                timeout_seconds=timeout_seconds,
                on_no_answer=on_no_answer,
                ask_id=ask_id,
                idempotency_key=idempotency_key,
                agent=agent,
            )
        )

    async def get_ask(
        self,
        ask: AskRef,
    ) -> Ask:
        """The ask as it stands."""
        return await self._drive(self._ops.get_ask(ask))

    async def wait(
        self,
        ask: AskRef,
        *,
        timeout: float | None = None,
    ) -> Outcome:
        """Waits until the ask is closed, for ever unless told otherwise: over restarts of the server and dead networks.

        `timeout` is how long you are willing to wait, in seconds; it does not touch the ask. When it passes, `StillOpen`
        is raised, which is nobody's answer. Returns `Answered`, `Settled`, `TimedOut` or `Withdrawn`.
        """
        return await self._drive(self._ops.wait(ask, timeout=timeout))

    async def ask_and_wait(
        self,
        questions: Question | Sequence[Question],
        *,
        run: Run | str | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        timeout_seconds: float | None = None,
        on_no_answer: OnNoAnswer | None = None,
        ask_id: str | None = None,
        agent: str | None = None,
        wait_timeout: float | None = None,
    ) -> Outcome:
        """Asks and waits until the ask is closed, for ever unless told otherwise.

        Without `run` (and without a run of the client, or `CHIPS_RUN`) it opens one of its own, called `title` and with
        `labels`, and ends it after. Interrupted, or past `wait_timeout` (`StillOpen`), the ask stays open: the same call
        with the same `ask_id` takes it up again, `withdraw` takes it back.
        """
        return await self._drive(
            self._ops.ask_and_wait(
                questions,
                run=run,
                title=title,
                labels=labels,
                timeout_seconds=timeout_seconds,
                on_no_answer=on_no_answer,
                ask_id=ask_id,
                agent=agent,
                wait_timeout=wait_timeout,
            )
        )

    async def answer(
        self,
        ask: AskRef,
        answers: Answers,
        *,
        idempotency_key: str | None = None,
    ) -> Stored[AnsweredEvent]:
        """Answers as a person, with a person's token. Values by question id, or `Answer`s.

        Raises `AlreadyClosed` where somebody was first, `InvalidEvent` where the answer does not fit the question.
        """
        return await self._drive(self._ops.answer(ask, answers, idempotency_key=idempotency_key))

    async def settle(
        self,
        ask: AskRef,
        answers: Answers,
        *,
        timed_out: bool = False,
        agent: str | None = None,
        idempotency_key: str | None = None,
    ) -> Stored[AnsweredEvent]:
        """Answers your own question, because it was answered in your own tools.

        `timed_out` says that nobody answered there either, and that these are the defaults you took.
        """
        return await self._drive(
            self._ops.settle(
                ask,
                answers,
                timed_out=timed_out,
                agent=agent,
                idempotency_key=idempotency_key,
            )
        )

    async def withdraw(
        self,
        ask: AskRef,
        *,
        agent: str | None = None,
        idempotency_key: str | None = None,
    ) -> Stored[AnsweredEvent]:
        """Takes your own question back. Raises `AlreadyClosed`, with what closed it, where somebody was first."""
        return await self._drive(self._ops.withdraw(ask, agent=agent, idempotency_key=idempotency_key))

    async def acknowledge(
        self,
        ask: AskRef | Outcome,
    ) -> Ask:
        """Says that you have acted on the answer. The first time stands."""
        return await self._drive(self._ops.acknowledge(ask))

    async def asks(
        self,
        *,
        state: str | None = None,
        space: str | None = None,
        run: Run | str | None = None,
        harness: str | None = None,
        label: str | None = None,
        q: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> AsksPage:
        """A page of asks.

        `state` is one state, `open` or `closed`; `label` is `key:value`; `q` is text to look for; `before` is the `next`
        of the page before. Open asks come with the most urgent first, others newest first.
        """
        return await self._drive(
            self._ops.asks(
                state=state,
                space=space,
                run=run,
                harness=harness,
                label=label,
                q=q,
                limit=limit,
                before=before,
            )
        )

    async def events(
        self,
        *,
        after: int = 0,
        log: str | None = None,
        limit: int | None = None,
        type: EventType | None = None,
        run: Run | str | None = None,
        ask: AskRef | None = None,
    ) -> EventsPage:
        """A page of the log, in the order of `seq`. Raises `CursorLost` where `log` is another history than the server's."""
        return await self._drive(self._ops.events(after=after, log=log, limit=limit, type=type, run=run, ask=ask))

    async def head(self) -> Position:
        """Where the log ends now: hand it to `stream` to read what comes from here on."""
        return await self._drive(self._ops.head())

    def stream(
        self,
        *,
        after: Position | int | None = None,
        type: EventType | None = None,
        run: Run | str | None = None,
        ask: AskRef | None = None,
    ) -> AsyncGenerator[Event, None]:
        """The log as it grows, each event once and in order, over restarts of the server and dead networks.

        Starts after `after` (a `seq`, or a `Position`), else with what comes from now on. To go on in another process,
        keep the `log` of `head()` and the `seq` of the last event that you have dealt with. Raises `CursorLost` where
        the log was restored meanwhile, rather than skip anything.
        """
        return self._iterate(self._ops.stream(after=after, type=type, run=run, ask=ask))

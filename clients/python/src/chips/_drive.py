"""Carrying operations out: one driver that blocks, one that awaits. They do I/O and nothing else."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from chips._core import Operations, Settings
from chips._op import Call, Effect, Emit, Feed, Lost, Op, Open, Read, Request, Response, Send, Sleep
from chips.errors import NotConfigured

__all__ = ["AsyncDriver", "SyncDriver"]

T = TypeVar("T")
D = TypeVar("D", bound="SyncDriver")
A = TypeVar("A", bound="AsyncDriver")

CONNECT_TIMEOUT = 10.0
WRITE_TIMEOUT = 30.0
AGENT = "chips-client-python/0.1.0"


class _Driver:
    """What both drivers know: where Chips is, and how a request to it looks."""

    def __init__(
        self,
        url: str | None,
        token: str | None,
        run: str | None,
        retry_for: float | None,
    ) -> None:
        self._url = _address(url or os.environ.get("CHIPS_URL", ""))
        self._token = _token(token or os.environ.get("CHIPS_TOKEN", ""))
        self._ops = Operations(Settings(run=run or os.environ.get("CHIPS_RUN") or None, retry_for=retry_for))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"

    def _options(self) -> dict[str, Any]:
        # Each wait holds a connection for a long time, so their number is not limited. Chips on this machine is never
        # behind the proxy that the environment names.
        return {
            "limits": httpx.Limits(max_connections=None, max_keepalive_connections=20),
            "trust_env": not _loopback(self._url),
            "follow_redirects": False,
        }

    def _arguments(self, request: Request) -> dict[str, Any]:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": request.accept,
            "Accept-Encoding": "identity",
            "User-Agent": AGENT,
        }
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        return {
            "method": request.method,
            "url": self._url + request.path,
            "params": list(request.query) or None,
            "content": request.body,
            "headers": headers,
            "timeout": httpx.Timeout(
                connect=CONNECT_TIMEOUT, read=request.read_timeout, write=WRITE_TIMEOUT, pool=None
            ),
        }


class SyncDriver(_Driver):
    """Carries operations out in the calling thread."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        run: str | None = None,
        retry_for: float | None = 300.0,
        http: httpx.Client | None = None,
    ) -> None:
        """A client of Chips at `url` with this `token` (else `CHIPS_URL` and `CHIPS_TOKEN`).

        `run` (else `CHIPS_RUN`) is the run of asks that name none. `retry_for` is how long a request is tried again
        while Chips can't be reached, in seconds, or None for ever; waiting for an answer is not bounded by it. `http`
        is an `httpx` client of your own, for certificates or proxies of your own; it stays yours to close.
        """
        super().__init__(url, token, run, retry_for)
        self._own = http is None
        self._http = http or httpx.Client(**self._options())

    def __enter__(self: D) -> D:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        if self._own:
            self._http.close()

    def _drive(self, op: Op[T]) -> T:
        link = _Link()
        try:
            effect = next(op)
            while True:
                try:
                    came = self._perform(effect, link)
                except BaseException as error:
                    effect = op.throw(error)
                else:
                    effect = op.send(came)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        finally:
            op.close()

    def _iterate(self, op: Feed[T]) -> Generator[T, None, None]:
        link = _Link()
        try:
            effect = next(op)
            while True:
                if isinstance(effect, Emit):
                    yield effect.value
                    effect = op.send(None)
                    continue
                try:
                    came = self._perform(effect, link)
                except BaseException as error:
                    effect = op.throw(error)
                else:
                    effect = op.send(came)
        except StopIteration:
            return
        finally:
            op.close()
            self._hang_up(link)

    def _perform(self, effect: Effect, link: _Link) -> object:
        if isinstance(effect, Sleep):
            time.sleep(effect.seconds)
            return None
        if isinstance(effect, Call):
            return effect.blocking()
        try:
            if isinstance(effect, Read):
                return next(link.pieces, b"")
            assert isinstance(effect, (Send, Open))
            self._hang_up(link)
            request = self._http.build_request(**self._arguments(effect.request))
            reply = self._http.send(request, stream=isinstance(effect, Open), follow_redirects=False)
            if isinstance(effect, Open):
                link.reply = reply
                if reply.status_code != 200:
                    reply.read()
                    self._hang_up(link)
                else:
                    link.pieces = reply.iter_raw()
                    return _response(reply, b"")
            return _response(reply, reply.content)
        except httpx.HTTPError as error:
            self._hang_up(link)
            raise _lost(error) from error

    def _hang_up(self, link: _Link) -> None:
        reply, link.reply, link.pieces = link.reply, None, iter(())
        if reply is not None:
            reply.close()


class AsyncDriver(_Driver):
    """Carries operations out on the running event loop."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        run: str | None = None,
        retry_for: float | None = 300.0,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        """A client of Chips at `url` with this `token` (else `CHIPS_URL` and `CHIPS_TOKEN`).

        `run` (else `CHIPS_RUN`) is the run of asks that name none. `retry_for` is how long a request is tried again
        while Chips can't be reached, in seconds, or None for ever; waiting for an answer is not bounded by it. `http`
        is an `httpx` client of your own, for certificates or proxies of your own; it stays yours to close.
        """
        super().__init__(url, token, run, retry_for)
        self._own = http is None
        self._http = http or httpx.AsyncClient(**self._options())

    async def __aenter__(self: A) -> A:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        if self._own:
            await self._http.aclose()

    async def _drive(self, op: Op[T]) -> T:
        link = _AsyncLink()
        try:
            effect = next(op)
            while True:
                try:
                    came = await self._perform(effect, link)
                except BaseException as error:
                    effect = op.throw(error)
                else:
                    effect = op.send(came)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        finally:
            op.close()

    async def _iterate(self, op: Feed[T]) -> AsyncGenerator[T, None]:
        link = _AsyncLink()
        try:
            effect = next(op)
            while True:
                if isinstance(effect, Emit):
                    yield effect.value
                    effect = op.send(None)
                    continue
                try:
                    came = await self._perform(effect, link)
                except BaseException as error:
                    effect = op.throw(error)
                else:
                    effect = op.send(came)
        except StopIteration:
            return
        finally:
            op.close()
            await self._hang_up(link)

    async def _perform(self, effect: Effect, link: _AsyncLink) -> object:
        if isinstance(effect, Sleep):
            await asyncio.sleep(effect.seconds)
            return None
        if isinstance(effect, Call):
            return await effect.awaited()
        try:
            if isinstance(effect, Read):
                return await anext(link.pieces, b"") if link.pieces is not None else b""
            assert isinstance(effect, (Send, Open))
            await self._hang_up(link)
            request = self._http.build_request(**self._arguments(effect.request))
            reply = await self._http.send(request, stream=isinstance(effect, Open), follow_redirects=False)
            if isinstance(effect, Open):
                link.reply = reply
                if reply.status_code != 200:
                    await reply.aread()
                    await self._hang_up(link)
                else:
                    link.pieces = reply.aiter_raw()
                    return _response(reply, b"")
            return _response(reply, reply.content)
        except httpx.HTTPError as error:
            await self._hang_up(link)
            raise _lost(error) from error

    async def _hang_up(self, link: _AsyncLink) -> None:
        reply, pieces, link.reply, link.pieces = link.reply, link.pieces, None, None
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
        if reply is not None:
            await reply.aclose()


class _Link:
    """The reply that one operation reads piece by piece."""

    def __init__(self) -> None:
        self.reply: httpx.Response | None = None
        self.pieces: Iterator[bytes] = iter(())


class _AsyncLink:
    """The same for a driver that awaits."""

    def __init__(self) -> None:
        self.reply: httpx.Response | None = None
        self.pieces: AsyncIterator[bytes] | None = None


def _response(reply: httpx.Response, body: bytes) -> Response:
    return Response(reply.status_code, {name.lower(): value for name, value in reply.headers.items()}, body)


def _lost(error: httpx.HTTPError) -> Lost:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Lost(what, hopeless=True)
        cause = cause.__cause__ or cause.__context__
    return Lost(what, hopeless=isinstance(error, (httpx.UnsupportedProtocol, httpx.LocalProtocolError)))


def _address(url: str) -> str:
    """The address without a slash at its end; raises where it can't be one."""
    if not url:
        raise NotConfigured("no address: pass `url`, or set CHIPS_URL (http://127.0.0.1:7070, say)")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NotConfigured("the address has to start with http:// or https:// and name a host")
    if parts.username is not None or parts.query or parts.fragment:
        raise NotConfigured("the address holds a user, a query or a fragment; the token is passed as `token`")
    return url.rstrip("/")


def _token(token: str) -> str:
    token = token.strip()
    if not token:
        raise NotConfigured("no token: pass `token`, or set CHIPS_TOKEN (`chips init` prints one)")
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise NotConfigured("the token holds characters that no token has; was something else pasted with it?")
    return token


def _loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

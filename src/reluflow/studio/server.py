"""The page's server: this computer only, checked hosts and origins, a token for the WebSocket.

A page of another site can make a browser send requests to 127.0.0.1. So every request must name
this server as its Host, and as its Origin if it names one; the WebSocket, through which everything
but the page's own files goes, must name it and show the token, which stands in the fragment of the
printed address and so is sent nowhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from reluflow.errors import ReluflowError
from reluflow.playback.bundle import read_static, static_names
from reluflow.playback.messages import from_block, to_block
from reluflow.studio.engine import Engine
from reluflow.studio.session import Session
from reluflow.studio.settings import MOST_TEXT
from reluflow.studio.welcome import welcome

HOST = "127.0.0.1"
MOST_BYTES = MOST_TEXT + (1 << 20)  # of one message
MOST_VIEWS = 8
PROTOCOL = "reluflow-studio"
_MEDIA = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Refuses requests that name another host or origin, and adds the headers of a closed page."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        why = self.refusal(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(k.encode(), v.encode()) for k, v in _HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *extra]}
            await send(message)

        if not why:
            await self.app(scope, receive, send_with_headers)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": why})
        else:
            answer = PlainTextResponse(why, 403, headers={"connection": "close"})
            await answer(scope, receive, send_with_headers)

    def refusal(self, scope: Scope) -> str:
        """Why a request is refused; empty if it is not."""
        headers = [(k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in scope["headers"]]
        hosts = [value for name, value in headers if name == "host"]
        origins = [value for name, value in headers if name == "origin"]
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return "this server answers to its own address only"
        if scope["type"] == "websocket" and not origins:
            return "a view names its origin"
        if any(origin.lower() not in self.origins for origin in origins):
            return "requests from other pages are refused"
        return ""


class Views:
    """The open views, and a worker that is ready for the first of them."""

    def __init__(self, token: str, data: str | None) -> None:
        self.token, self.data = token, data
        self.count = 0
        self._spare: Engine | None = None

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Begin to warm a worker up as soon as the server is there."""
        self._spare = Engine()
        yield
        if self._spare is not None:
            self._spare.close()

    async def serve(self, socket: WebSocket) -> None:
        """One view, from its first message to its last."""
        offered = [p.strip() for p in socket.headers.get("sec-websocket-protocol", "").split(",")]
        shown = next((p for p in offered if p != PROTOCOL), "")
        if PROTOCOL not in offered or not hmac.compare_digest(shown.encode(), self.token.encode()):
            await socket.close(1008, "the address of this page lacks the server's token")
            return
        await socket.accept(subprotocol=PROTOCOL)
        if self.count >= MOST_VIEWS:
            await socket.close(1013, f"{MOST_VIEWS} views are open: close one of them")
            return
        self.count += 1
        engine, self._spare = self._spare, None
        try:
            session = await _talk(socket, engine, self.data)
            engine = await asyncio.get_running_loop().run_in_executor(None, session.release)
            if self._spare is None:
                self._spare = engine  # a page that is loaded again need not wait for a new one
            elif engine is not None:
                engine.close()
        finally:
            self.count -= 1


async def _talk(socket: WebSocket, engine: Engine | None, data: str | None) -> Session:
    """Hand messages from the page to its session and blocks back, until the page goes."""
    loop = asyncio.get_running_loop()
    outgoing: asyncio.Queue[bytes] = asyncio.Queue()

    def emit(block: bytes) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed when the server ends
            loop.call_soon_threadsafe(outgoing.put_nowait, block)

    session = await loop.run_in_executor(None, Session, emit, engine)
    await socket.send_bytes(to_block(welcome(data)))

    async def write() -> None:
        while True:
            await socket.send_bytes(await outgoing.get())

    writer = asyncio.create_task(write())
    try:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                break
            taken = _read(message)
            await loop.run_in_executor(None, session.receive, *taken)
    except (WebSocketDisconnect, RuntimeError):
        pass
    finally:
        writer.cancel()
    return session


def _read(message: Message) -> tuple[Any, bytes | None]:
    """A text is a message; bytes are one with a file beside it. Anything else is None."""
    text = message.get("text")
    try:
        if text is not None:
            return json.loads(text), None
        plain, arrays = from_block(message.get("bytes") or b"")
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, None
    blob = arrays.get("blob")
    return plain, None if blob is None else blob.tobytes()


def make_app(port: int, token: str, data: str | None = None) -> ASGIApp:
    """The application that answers on ``port``.

    Parameters
    ----------
    data : str, optional
        Name of a built-in set, or the text of the settings (JSON) that a view begins with.
    """
    views = Views(token, data)
    names = set(static_names())

    async def page(request: Request) -> Response:
        return Response(read_static("index.html"), media_type="text/html")

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in names:
            return PlainTextResponse("no such file", 404)
        return Response(read_static(name), media_type=_MEDIA["." + name.rpartition(".")[2]])

    app = Starlette(
        routes=[
            Route("/", page, methods=["GET"]),
            Route("/static/{name}", static, methods=["GET"]),
            WebSocketRoute("/view", views.serve),
        ],
        lifespan=views.lifespan,
    )
    return Guard(app, port)


def listen(port: int) -> socket.socket:
    """A socket on this computer's own address; port 0 takes any free one."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
    except OverflowError:
        made.close()
        raise ReluflowError(f"--port must lie between 0 and 65535, got {port}") from None
    except OSError as error:
        made.close()
        why = (error.strerror or str(error)).lower()
        raise ReluflowError(f"port {port} cannot be used ({why}): give another --port") from None
    return made


def serve(data: str | None = None, port: int = 0, ready: Callable[[str], None] = print) -> None:
    """Serve the page until Ctrl-C.

    Parameters
    ----------
    data : str, optional
        As for `make_app`.
    port : int
        0 takes any free port.
    ready : callable(address)
        Called once with the address, token included, when connections are taken.
    """
    import uvicorn

    token = secrets.token_urlsafe(24)
    with listen(port) as taken:
        actual = taken.getsockname()[1]
        config = uvicorn.Config(
            make_app(actual, token, data),
            log_level="error",
            ws_max_size=MOST_BYTES,
            ws_per_message_deflate=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(config)
        taken.listen(64)
        ready(f"http://{HOST}:{actual}/#token={token}")
        server.run(sockets=[taken])

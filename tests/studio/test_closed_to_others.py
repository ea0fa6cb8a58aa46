"""Requests that are not the page's own are refused, and the server lives on."""

import contextlib
import json
import os
import random
import socket

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from reluflow.playback.messages import from_block
from reluflow.studio.server import MOST_BYTES

PROTOCOL = "reluflow-studio"


def view(studio, token=None, origin=None, **named):
    return connect(
        f"ws://{studio.host}/view",
        subprotocols=[PROTOCOL, studio.token if token is None else token],
        origin=origin or f"http://{studio.host}",
        max_size=None,
        **named,
    )


def received(socket, kind, tries=400):
    """The first message of a kind."""
    for _ in range(tries):
        message, arrays = from_block(socket.recv(timeout=60))
        if message["type"] == kind:
            return message, arrays
    raise AssertionError(f"no message {kind}")


def test_the_page_comes_with_a_strict_policy(studio):
    answer = httpx.get(f"http://{studio.host}/")
    assert answer.status_code == 200
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert studio.token not in answer.text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1:1", "0.0.0.0", ""])
def test_a_foreign_host_is_refused(studio, host):
    answer = httpx.get(f"http://{studio.host}/", headers={"host": host})
    assert answer.status_code in (400, 403)
    assert "<main" not in answer.text


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://{host}", "http://localhost"]
)
def test_a_foreign_origin_is_refused(studio, origin):
    origin = origin.format(host=studio.host)
    assert httpx.get(f"http://{studio.host}/", headers={"origin": origin}).status_code == 403
    with pytest.raises(InvalidStatus) as refused:
        view(studio, origin=origin)
    assert refused.value.response.status_code == 403


def test_a_view_without_origin_is_refused(studio):
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://{studio.host}/view", subprotocols=[PROTOCOL, studio.token])
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize("token", ["none", "wrong", "é"])
def test_a_view_without_the_token_is_refused(studio, token):
    raw = (
        f"GET /view HTTP/1.1\r\nHost: {studio.host}\r\nOrigin: http://{studio.host}\r\n"
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        f"Sec-WebSocket-Protocol: {PROTOCOL}, {token}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", studio.port), timeout=10) as line:
        line.sendall(raw.encode())
        assert b" 101 " not in line.recv(200)


def test_the_server_listens_on_this_computer_alone(studio):
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table if f":{studio.port:04X} " in line]
    listening = {row[1].split(":")[0] for row in rows if row[3] == "0A"}
    assert listening == {"0100007F"}  # 127.0.0.1


@pytest.mark.parametrize(
    "path", ["/static/../server.py", "/static/%2e%2e/__init__.py", "/etc/passwd"]
)
def test_only_files_of_the_page_are_handed_out(studio, path):
    assert httpx.get(f"http://{studio.host}{path}").status_code == 404


def send_and_listen(socket, data):
    socket.send(data)
    for _ in range(100):
        socket.recv(timeout=60)


def test_a_hundred_megabytes_are_refused(studio):
    big = b"0" * (100 << 20)
    try:
        answer = httpx.post(f"http://{studio.host}/", content=big, timeout=60)
        assert answer.status_code in (403, 405, 413)
    except httpx.TransportError:
        pass  # the server closed the line while we were talking
    with view(studio) as socket, pytest.raises((ConnectionClosed, OSError)) as closed:
        send_and_listen(socket, big)
    if isinstance(closed.value, ConnectionClosed) and closed.value.rcvd is not None:
        assert closed.value.rcvd.code == 1009  # message too big
    assert MOST_BYTES < 100 << 20
    assert httpx.get(f"http://{studio.host}/").status_code == 200


def random_message(rng):
    """Bytes, text, JSON, and JSON that is nearly right."""
    choice = rng.randrange(5)
    if choice == 0:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
    if choice == 1:
        return "".join(chr(rng.randrange(32, 1000)) for _ in range(rng.randrange(100)))
    if choice == 2:
        return json.dumps(rng.choice([None, 3, [], {}, "x", {"type": []}, {"type": {"a": 1}}]))
    if choice == 3:
        return "[" * rng.randrange(1, 5000)
    values = [None, -1, 1e308, "A", "B", {}, [], {"start": {"m": rng.choice([0, 10**12, "x", -5])}}]
    names = ("id", "side", "settings", "kind")
    kinds = ["predict", "simulate", "explain", "export", "cancel", "hello", "welcome"]
    return json.dumps({"type": rng.choice(kinds), **{n: rng.choice(values) for n in names}})


def test_a_thousand_random_messages_leave_the_view_alive(studio):
    rng = random.Random(0)
    with view(studio) as socket:
        received(socket, "welcome")
        for _ in range(1000):
            socket.send(random_message(rng))
        settings = {"data": {"source": "built-in", "name": "golden"}, "start": {"m": 5}}
        socket.send(json.dumps({"type": "predict", "id": 7, "side": "A", "settings": settings}))
        for _ in range(3000):
            message, _ = from_block(socket.recv(timeout=60))
            if message["type"] == "process" and message.get("id") == 7:
                break
        assert message["process"]["losses"][0] == 3.75
    assert studio.alive


@pytest.fixture(scope="module")
def one_view(studio):
    with view(studio) as socket:
        yield socket


@pytest.mark.parametrize(
    ("settings", "field", "words"),
    [
        ({"start": {"m": 0}}, "start.m", "greater than or equal to 1"),
        ({"start": {"m": 10**9}}, "start.m", "less than or equal to 200000"),
        ({"data": {"source": "built-in", "name": "nothing"}}, "data.name", "unknown dataset"),
        ({"start": {"kind": "strange"}}, "start.kind", "unknown kind"),
        ({"data": {"source": "points", "rows": [[1, 2], [1, 2, 3]]}}, "data.rows", "differ"),
        ({"data": {"source": "table", "text": "a,b\n1,x\n2"}}, "data.text", "table.csv"),
        ({"unknown": 1}, "unknown", "not permitted"),
    ],
)
def test_refusals_name_the_field_in_one_sentence(one_view, settings, field, words):
    one_view.send(json.dumps({"type": "predict", "id": 1, "side": "A", "settings": settings}))
    message, _ = received(one_view, "refused")
    assert message["field"] == field
    assert words in message["sentence"]
    assert "\n" not in message["sentence"]
    assert os.sep + "tmp" not in message["sentence"]


def test_views_are_counted(studio, one_view):
    from reluflow.studio.server import MOST_VIEWS

    with contextlib.ExitStack() as stack:
        for _ in range(MOST_VIEWS - 1):  # `one_view` is open, too
            stack.enter_context(view(studio))
        one_more = stack.enter_context(view(studio))
        with pytest.raises(ConnectionClosed) as closed:
            one_more.recv(timeout=20)
        assert closed.value.rcvd.code == 1013

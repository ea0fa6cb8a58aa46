"""The studio: a page, and a notebook widget, where data, prediction and training meet.

One front end, three hosts
--------------------------
The front end (`reluflow.playback`, ``static/studio.js``) is an ES module with anywidget's
interface: ``export default {render({model, el})}``, where ``model`` has ``get``, ``set``, ``on``,
``off``, ``save_changes`` and ``send``. It does not know where it lives:

- **page** (`server`, ``host-page.js``): the same interface over a WebSocket; settings live in the
  fragment of the address, so that back, forward and bookmarks work;
- **notebook** (`widget`): anywidget; the modules are joined into one by `playback.bundle`;
- **replay** (``host-replay.js``, `playback.snippet`): a model that holds one recorded run and
  answers nothing; inside report.html, without a server.

One view, one worker
--------------------
A view is a `session`, and a session has a worker process of its own (`engine`, `worker`): compiled
kernels hold the interpreter's lock, so a thread would stop the server's event loop; a process can
also be cancelled (SIGINT, at which the limit process and the flow end at their next look) or, if
that does not help, be replaced. A session does one job at a time, the newest first; what a drag has
made obsolete is dropped before it starts, or cancelled. Workers compile their kernels when they
start and say how far they are; the first one starts with the server, before the page is there.

Jobs are ``predict`` (problem, landscape, jumps: each is sent when it is there, so that a drag sees
the landscape in milliseconds and the jumps as soon as they are computed), ``simulate`` (one flow,
the numbers of `reluflow.flow`), ``explain`` (the verdict, sentence by sentence) and ``export``.
Answers are blocks of plain values and arrays (`playback.messages`).

Neurons of 200,000 travel as base vectors, then one small matrix for each cone and frame
(`playback.frames`); the browser moves and draws them.

Closed to others
----------------
The server listens on 127.0.0.1, checks Host and Origin of every request and a token on the
WebSocket, caps messages and views, and writes nothing to disk (`server`).
"""

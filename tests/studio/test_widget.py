"""The widget: an executed notebook, and its front end in Chromium with a model of its own."""

import json
from pathlib import Path

import nbclient
import nbformat
import pytest

import reluflow as rf
from reluflow.playback.messages import from_block

pytest.importorskip("anywidget")
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_notebook_runs_and_shows_the_widget(tmp_path):
    notebook = nbformat.read(ROOT / "examples" / "studio.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute(cwd=str(tmp_path))
    shown, start, prediction = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    view = shown[0]["data"]["application/vnd.jupyter.widget-view+json"]
    states = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    state = states[view["model_id"]]["state"]
    assert state["state"]["a"]["start"]["m"] == 100
    assert "export default m_studio.default;" in state["_esm"]
    assert "'scale': 1e-06" in start[0]["data"]["text/plain"]
    problem = rf.datasets.three_points()
    net = rf.initialize(problem, 100, scale=1e-6, rng=0)
    time = rf.limit(problem, net).jump_times(log_scale=float(net.log_norms.max()))[0]
    assert str(float(time)) in prediction[0]["data"]["text/plain"]


class Sent:
    """What a widget hands to its front end."""

    def __init__(self, widget):
        self.blocks = []
        widget.send = lambda content, buffers: self.blocks.append(from_block(buffers[0])[0])


def test_a_widget_greets_its_front_end_and_refuses_what_cannot_be():
    widget = rf.Studio("golden", m=5)
    sent = Sent(widget)
    widget._take(widget, {"type": "hello"}, [])
    assert [m["type"] for m in sent.blocks] == ["welcome"]
    widget._take(widget, ["nothing"], [])
    widget._take(widget, {"type": "nothing"}, [])
    assert sent.blocks[-1]["type"] == "refused"
    widget.close()
    with pytest.raises(rf.ReluflowError, match="m: input should be greater than or equal to 1"):
        rf.Studio("golden", m=0)
    with pytest.raises(rf.ReluflowError, match="the studio takes up to 500 of 64"):
        rf.Studio(rf.datasets.load("skewed-xor"))


MODEL = """
const given = JSON.parse(document.getElementById("values").textContent);
const values = {state: null, given: true, ...given};
const heard = new Map();
const model = {
  get: (name) => values[name], set: (name, value) => { values[name] = value; },
  save_changes: () => {}, on: (name, f) => heard.set(name, f), off: () => {},
  send: async (message, callbacks, buffers) => {
    for (const block of await window.toPython(JSON.stringify(message))) {
      const bytes = Uint8Array.from(atob(block), (c) => c.charCodeAt(0));
      heard.get("msg:custom")({type: "block"}, [new DataView(bytes.buffer)]);
    }
  },
};
studio.render({model, el: document.getElementById("here")});
"""


@pytest.mark.slow
def test_the_bundled_module_renders_with_a_model_of_a_notebook(page):
    """anywidget's module interface, with Python at the other end of ``send``."""
    import base64

    from reluflow.studio import worker

    widget = rf.Studio("three-points", m=20, scale=1e-4)
    desk_sent = []

    def keep(message, arrays=None):
        desk_sent.append(worker.to_block(message, arrays))

    desk = worker.Desk(keep)

    def to_python(text):
        message = json.loads(text)
        desk_sent.clear()
        if message["type"] == "hello":
            keep(worker_welcome())
            keep({"type": "engine", "ready": True, "share": 1, "note": ""})
        elif message["type"] in worker.JOBS:
            worker._do(desk, message, None)
            done = {"type": "done", "id": message["id"], "job": message["type"], "side": "A"}
            keep({**done, "ok": True})
        return [base64.b64encode(block).decode() for block in desk_sent]

    page.expose_function("toPython", to_python)
    script = widget._esm.replace("export default m_studio", "const studio = m_studio")
    values = json.dumps({"state": widget.state})
    page.set_content(
        f"<style>{widget._css}</style><div id=here></div>"
        f'<script type="application/json" id="values">{values}</script>'
        f'<script type="module">{script}{MODEL}</script>'
    )
    page.locator(".rf-run", has_text="Simulated").first.wait_for()
    problem = rf.datasets.three_points()
    net = rf.initialize(problem, 20, scale=1e-4, rng=0)
    shown = float(page.locator(".rf-run").first.get_attribute("data-loss"))
    assert shown == rf.flow(problem, net).loss[-1]


def worker_welcome():
    from reluflow.studio.welcome import welcome

    return welcome(None)

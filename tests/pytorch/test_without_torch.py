"""Where PyTorch is absent one sentence says so, and what does not need it works."""

import subprocess
import sys

CODE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import reluflow
import reluflow.torch
from reluflow.torch import Probe, dominoes, mnist_images, simplicity_bias
assert "torch" not in sys.modules
for name in ("from_torch", "Monitor", "train", "ResNet18"):
    try:
        getattr(reluflow.torch, name)
    except reluflow.ReluflowError as error:
        assert "pip install 'reluflow[torch]'" in str(error), error
    else:
        raise AssertionError(name)
assert not hasattr(reluflow.torch, "nothing")
from reluflow.papers.tk24.figures.dominoes import QUICK_SIZE, figure4
from reluflow.papers.figure import Skipped
try:
    figure4(**QUICK_SIZE)
except Skipped as reason:
    print(reason)
"""


def test_absent_torch_is_said():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "needs PyTorch: pip install 'reluflow[torch]'"


def test_the_package_is_imported_without_torch():
    code = "import sys, reluflow.torch; print('torch' in sys.modules, 'sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"

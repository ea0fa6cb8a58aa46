"""Long work: progress on a terminal, Ctrl-C that returns what there is, checkpoints, files."""

from reluflow.runtime.checkpoint import Checkpoint
from reluflow.runtime.files import beside, hold, write_bytes, write_text
from reluflow.runtime.progress import Interrupt, Progress

__all__ = ["Checkpoint", "Interrupt", "Progress", "beside", "hold", "write_bytes", "write_text"]

"""The quick form of `make chaos`: two kills of each command."""

import pytest

from chaos import COMMANDS, main


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_commands_end_with_the_same_numbers(name, tmp_path):
    log = tmp_path / "chaos.log"
    assert main(["--kills", "2", "--seed", "1", "--only", name, "--log", str(log)]) == 0
    text = log.read_text()
    assert f"{name}: 2 kills met a running process, 0 differences" in text
    assert "the same numbers" in text

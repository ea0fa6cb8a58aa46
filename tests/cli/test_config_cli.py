"""Configurations: what is read, what wins, and that faults are named by field."""

import pytest

from reluflow import ReluflowError
from reluflow.cli.config import MAX_BYTES, Config, read_config
from reluflow.cli.options import dataset_options


def written(tmp_path, text):
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def test_defaults_and_round_trip(tmp_path):
    config = read_config(written(tmp_path, "[data]\nsource = 'toy6'\n"))
    assert config.network.m == 200
    assert not config.run.descends
    assert Config.model_validate(config.to_dict() | {"run": {}}).save == config.save


def test_descent_is_known_by_lr(tmp_path):
    text = "[data]\nsource = 'toy6'\nloss = 'logistic'\n[run]\nlr = 1\nsteps = 3\n"
    config = read_config(written(tmp_path, text))
    assert config.run.descends
    assert config.run.lr == 1.0
    assert config.data.options == {"loss": "logistic"}


def test_faults_name_the_option_or_the_file(tmp_path):
    path = written(tmp_path, "[data]\nsource = 'toy6'\n[network]\nm = 3\nscale = -1.0\n")
    with pytest.raises(ReluflowError, match=r"run\.toml: \[network\] scale must be greater than 0"):
        read_config(path)
    with pytest.raises(ReluflowError, match=r"^--scale must be greater than 0, got -2"):
        read_config(path, {"network": {"scale": -2.0}})
    assert read_config(path, {"network": {"scale": 2.0}}).network.scale == 2.0


@pytest.mark.parametrize("name", ["m", "seed"])
@pytest.mark.parametrize("value", ["true", "1.0", "'1'", "[1]"])
def test_types_are_not_guessed(name, value, tmp_path):
    text = f"[data]\nsource = 'toy6'\n[network]\n{name} = {value}\n"
    with pytest.raises(ReluflowError, match=rf"\[network\] {name} must be a valid integer, got"):
        read_config(written(tmp_path, text))


def test_a_large_file_is_not_read(tmp_path):
    with pytest.raises(ReluflowError, match="bytes: expected a configuration"):
        read_config(written(tmp_path, "#" * (MAX_BYTES + 1)))


def test_options_of_a_dataset_are_values_of_toml():
    found = dataset_options(["n=64", "alpha=1.5", "law=normal", "y=[1, -1]", "per-class=3"])
    assert found == {"n": 64, "alpha": 1.5, "law": "normal", "y": [1, -1], "per_class": 3}
    with pytest.raises(ReluflowError, match="given twice"):
        dataset_options(["n=1", "n=2"])

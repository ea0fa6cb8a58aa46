"""reluflow probe: features at several epochs in, the simplicity-bias summary out."""

import json

import numpy as np


def made(epoch, strength):
    """Features of which two tell the simple attribute and two, by ``strength``, the complex one."""
    rng = np.random.default_rng(7)
    simple, complex_ = rng.integers(0, 3, 600), rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 8)) * 0.3
    for k, (labels, size) in enumerate(((simple, 3.0), (complex_, strength))):
        X[:, 2 * k] += size * np.cos(2 * np.pi / 3 * labels)
        X[:, 2 * k + 1] += size * np.sin(2 * np.pi / 3 * labels)
    return {"features": X, "simple": simple, "complex": complex_, "epoch": epoch}


def write(folder, strengths):
    paths = []
    for epoch, strength in strengths.items():
        paths.append(folder / f"epoch-{epoch}.npz")
        np.savez(paths[-1], **made(epoch, strength), fit=np.arange(600) < 450)
    return paths


def test_command_line(cli, tmp_path):
    paths = write(tmp_path, {0: 0.0, 8: 1.0, 32: 0.02})
    done = cli("probe", *paths)
    assert done.code == 0
    assert "Complex attribute:" in done.out
    assert "epoch 32" in done.out
    found = json.loads(cli("probe", *paths, "--json", "--penalized-only").out)
    assert found["complex"]["drop"]["p"] < 1e-6
    assert found["complex"]["drop"]["test"] == "sign test over samples"
    assert "complex, no penalty" not in found
    quiet = cli("probe", *paths, "--quiet", "--penalized-only")
    assert (quiet.code, quiet.out) == (0, "")
    bare = tmp_path / "bare"
    bare.mkdir()
    for epoch in (1, 4):
        item = made(epoch, 1.0)
        np.savez(bare / f"{epoch}.npz", features=item["features"], epoch=epoch)
    np.savez(tmp_path / "labels.npz", simple=item["simple"], complex=item["complex"])
    given = ("probe", bare / "1.npz", bare / "4.npz", "--penalized-only")
    assert cli(*given, "--labels", tmp_path / "labels.npz").code == 0
    refused = cli(*given)
    assert refused.code == 2
    assert "has no simple, complex" in refused.err


def test_command_line_refuses(cli, tmp_path):
    (tmp_path / "text.npz").write_text("no")
    write(tmp_path, {1: 1.0})
    np.savez(tmp_path / "object.npz", features=np.array([{}], dtype=object))
    np.savez(tmp_path / "long.npz", features=np.ones((4, 2)), epoch=1, simple=[1], complex=[1] * 4)
    for given, message in (
        (["nothing.npz"], "does not exist"),
        ([tmp_path / "text.npz"], "not a readable .npz"),
        ([tmp_path / "object.npz"], "not a readable .npz"),
        ([tmp_path / "long.npz"], "simple has shape"),
        ([tmp_path / "epoch-1.npz"], "two or more epochs"),
        ([tmp_path / "epoch-1.npz", "--C", "-1"], "--C must be positive"),
        ([], "Missing argument"),
    ):
        done = cli("probe", *given)
        assert done.code == 2, given
        assert message in done.err, done.err
        assert len(done.err.strip().splitlines()) == 1

"""[TK24]_ Section 7 on tiny images: figures are made, resumed, skipped, and say what they saw."""

import json

import numpy as np
import pytest

from reluflow.claims.claim import load_all
from reluflow.claims.ledger import ledger
from reluflow.claims.run import run_check
from reluflow.claims.verdict import Status, decide
from reluflow.papers.catalogue import all_figures
from reluflow.papers.figure import Skipped
from reluflow.papers.parts import make_figure
from reluflow.papers.tk24.figures import (
    dominoes as tk24_dominoes,
)
from reluflow.papers.tk24.figures import (
    dominoes_run as tk24_dominoes_run,
)
from reluflow.papers.tk24.figures import (
    dominoes_view as tk24_dominoes_view,
)
from reluflow.papers.tk24.figures.dominoes_run import (
    FULL,
    QUICK,
    SCALED,
    VARIANTS,
    epochs_of,
    place_of,
    run,
    runs_of,
)
from reluflow.plot.render import compose
from reluflow.runtime.files import alone_in

TINY = {**QUICK, "width": 4, "n_train": 400, "n_test": 200, "epochs": 4, "free_iterations": 50}


def write_idx(path, array):
    sizes = b"".join(int(size).to_bytes(4, "big") for size in array.shape)
    path.write_bytes(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())


@pytest.fixture(name="data")
def _data(tmp_path, monkeypatch):
    """Digits that are easy to tell and objects that are not."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data"
    folder.mkdir()
    arrays = {}
    for split, stem, n, m in (("train", "train", 700, 400), ("test", "t10k", 300, 200)):
        digits = rng.permutation(np.arange(n, dtype=np.uint8) % 10)
        images = rng.integers(0, 40, (n, 28, 28)).astype(np.uint8)
        images[np.arange(n), 4 + 2 * digits] = 255
        images[np.arange(n), :, 4 + 2 * digits] = 255
        write_idx(folder / f"{stem}-images-idx3-ubyte", images)
        write_idx(folder / f"{stem}-labels-idx1-ubyte", digits)
        classes = rng.permutation(np.arange(m, dtype=np.uint8) % 10)
        objects = rng.integers(0, 256, (m, 32, 32, 3)).astype(np.uint8)
        objects[..., 0] = (objects[..., 0] * 0.9 + classes[:, None, None]).astype(np.uint8)
        arrays |= {f"x_{split}": objects, f"y_{split}": classes}
    np.savez(folder / "cifar10_subset.npz", **arrays)
    monkeypatch.setenv("RELUFLOW_DATA", str(folder))
    return folder


def test_sizes_are_the_papers():
    """256 epochs, six seeds, probes at 17 epochs, 5 without penalty; as much decay when scaled."""
    assert (FULL["epochs"], FULL["n_seeds"], FULL["batch"]) == (256, 6, 128)
    assert tk24_dominoes_run.SEEDS == (3313, 1998, 1900, 1608, 3585, 96)
    assert epochs_of(FULL) == list(range(0, 257, 16))
    assert epochs_of(FULL, FULL["free_every"]) == [0, 64, 128, 192, 256]
    decay = [
        s["lr"] * s["weight_decay"] * s["epochs"] * -(-n // s["batch"])
        for s, n in ((FULL, 37_500), (SCALED, 7_500))
    ]
    assert decay[1] / decay[0] == pytest.approx(1, abs=0.05)
    assert VARIANTS["small start"]["scale"] == VARIANTS["cifar"]["scale"] == 2.0**-5


def test_every_id_has_a_check():
    found = {entry.id: entry for entry in ledger("TK24")}
    for name in ("F3", "F4", "F8", "F9", "F10", "CIFAR"):
        assert found[f"TK24-{name}"].checks, name


def test_without_data_figures_are_skipped(tmp_path, monkeypatch):
    monkeypatch.setenv("RELUFLOW_DATA", str(tmp_path))
    with pytest.raises(Skipped, match="needs MNIST and CIFAR-10"):
        tk24_dominoes.figure3(n_train=10, n_test=10)
    monkeypatch.setattr(tk24_dominoes_run, "has_torch", lambda: False)
    with pytest.raises(Skipped, match=r"pip install 'reluflow\[torch\]'"):
        tk24_dominoes.figure4(**tk24_dominoes.QUICK_SIZE)


def test_figure3_shows_dominoes(data):
    drawn = tk24_dominoes.figure3(n_train=300, n_test=200, jpeg=None)
    assert [c.status for c in drawn.seen] == [Status.HOLDS] * 5
    assert not drawn.hypotheses
    assert "300 training and 200 test images" in drawn.caption
    assert "not passed through JPEG" in drawn.caption
    assert drawn.pictures[0].panels[0].traces[0].values.shape == (64, 320, 3)
    compose(drawn.pictures[0])


def test_figure3_at_full_size_asks_for_all_images(data):
    """400 images are not the paper's 50,000: it says so, and is out of scope."""
    verdict = run_check(load_all()["TK24-F3"], size="full")
    assert verdict.status is Status.OUT_OF_SCOPE
    assert "400 and 200 images found" in verdict.text()
    parts = [c for c in verdict.comparisons if "part" in c.what]
    assert [c.bound for c in parts] == [37_500, 12_500, 7_500, 2_500]
    assert {c.status for c in parts} == {Status.FAILS}


def test_full_size_says_on_how_many_images():
    view = tk24_dominoes_view
    (whole,) = view.conditions("full", FULL, (50_000, 10_000))
    (part,) = view.conditions("full", FULL, (10_000, 3_000))
    assert (whole.ok, part.ok) == (True, False)
    assert "found" not in view.caption_of("full", FULL, (50_000, 10_000), "")
    assert "10,000 training and 3,000 test images" in view.caption_of(
        "full", FULL, (10_000, 3_000), ""
    )


def test_scaled_caption_names_what_differs():
    told = tk24_dominoes_view.caption_of("scaled", SCALED, (10_000, 3_000), "")
    for words in (
        "learning rate 0.25 instead of 0.125",
        "3,000 test images",
        "JPEG",
        "Newton",
        "2 fits of 1,500 iterations instead of 50 of 20,000",
    ):
        assert words in told


class TestRuns:
    @pytest.fixture(autouse=True)
    def _torch(self):
        pytest.importorskip("torch.nn", reason="needs torch: pip install 'reluflow[torch]'")

    def test_a_run_is_kept_and_resumed(self, data, tmp_path):
        folder = tmp_path / "runs"
        whole = run("usual start", 3, TINY, tmp_path / "other")
        part = run("usual start", 3, TINY, folder, until=2)
        assert len(part["records"]) == 3
        (place,) = folder.iterdir()
        assert (place / "state.npz").is_file()
        assert not (place / "result.json").exists()
        again = run("usual start", 3, TINY, folder)
        assert json.dumps(again) == json.dumps(whole)
        assert sorted(p.name for p in place.iterdir()) == ["lock", "result.json"]
        assert run("usual start", 3, TINY, folder) == json.loads(json.dumps(whole))
        run("usual start", 3, {**TINY, "lr": 0.1}, folder, until=0)
        assert len(list(folder.iterdir())) == 2

    def test_figures_share_runs_and_say_their_size(self, data, tmp_path):
        settings = {**tk24_dominoes.QUICK_SIZE, **TINY}
        drawn = tk24_dominoes.figure4(**settings, folder=tmp_path)
        assert "quick" in drawn.pictures[0].title
        assert drawn.caption.startswith("Quick:")
        assert all(c.what.startswith("quick size, ") for c in drawn.seen)
        assert [h.ok for h in drawn.hypotheses if "long enough" in h.name] == [False]
        made = {p.name for p in tmp_path.iterdir()}
        tk24_dominoes.figure8(**settings, folder=tmp_path)
        assert len({p.name for p in tmp_path.iterdir()} - made) == 2  # the usual start is new
        drawn = tk24_dominoes.baseline(**settings, folder=tmp_path)
        assert len({p.name for p in tmp_path.iterdir()} - made) == 2
        assert drawn.numbers["epochs"] == [0, 1, 2, 3, 4]
        compose(drawn.pictures[0])

    @pytest.mark.parametrize("name", ["F4", "F8", "F9", "F10", "CIFAR"])
    def test_quick_size_is_out_of_scope(self, monkeypatch, data, tmp_path, name):
        """Eight epochs do not test what the paper says of 256; the verdict says so both ways."""
        runs = {"cifar": [fake_quick()]}
        monkeypatch.setattr(
            tk24_dominoes, "runs_of", lambda variant, *_: runs.get(variant, [fake_quick()] * 2)
        )
        (tmp_path / "panels").mkdir()
        made = make_figure(all_figures()["TK24", name], tmp_path, "quick").verdicts[0]
        for verdict in (made, run_check(load_all()[f"TK24-{name}"])):
            assert verdict.status is Status.OUT_OF_SCOPE
            assert not verdict.surprising
            assert "long enough" in verdict.line()

    def test_resnet18_starts_and_resumes(self, data, tmp_path):
        """The paper's own settings but for fewer images: an epoch, a checkpoint, another one."""
        settings = {
            **FULL,
            "n_train": 12,
            "n_test": 40,
            "batch": 8,
            "epochs": 2,
            "points": 2,
            "free_every": 2,
            "free_fits": 1,
            "free_iterations": 5,
        }
        first = run("small start", 96, settings, tmp_path, until=1)
        assert [r["epoch"] for r in first["records"]] == [0, 1]
        done = run("small start", 96, settings, tmp_path)
        assert done["records"][:2] == first["records"]
        assert set(done["probes"]) == {"objects", "digits", "objects, no penalty"}
        assert done["records"][0]["norm"] > 0


def fake(early, late, free=50.0, free_late=None, settled=True):
    """A finished run with the given object accuracies at epochs 40 and 160."""

    def probe(accuracy, size):
        epochs = epochs_of(SCALED)
        return {
            "epochs": epochs,
            "accuracy": accuracy,
            "coefficients": [size] * 9,
            "settled": [settled] * 9,
        }

    objects = [0.1, early, *np.linspace(early, late, 7)]
    unpenalised = [0.1, early, early, *[early if free_late is None else free_late] * 6]
    return {
        "records": [{"epoch": 160, "right": 1.0, "validation": 0.7}],
        "probes": {
            "objects": probe(objects, 1.0),
            "digits": probe([0.5, *[0.99] * 8], 1.0),
            "objects, no penalty": probe(unpenalised, free),
        },
    }


def fake_quick():
    """A finished quick run."""
    epochs = epochs_of(QUICK)
    probe = {
        "epochs": epochs,
        "accuracy": [0.1, 0.2, 0.3, 0.3, 0.3],
        "coefficients": [1.0] * 5,
        "settled": [True] * 5,
    }
    names = ("objects", "digits", "objects, no penalty")
    records = [{"epoch": e, "right": 1.0, "validation": 0.3} for e in epochs]
    return {"records": records, "probes": dict.fromkeys(names, probe)}


def figure4_seen(runs):
    """What Figure 4 of these runs must show, by the words of the comparison."""
    found = tk24_dominoes_view.effects(runs, SCALED, fake(0, 0))
    seen = tk24_dominoes_view.shortcut_of(found, "scaled")
    seen += tk24_dominoes_view.small_start_of(found, "scaled")
    return found, {c.what: c.status.name for c in seen}


def test_effects_are_seen_only_where_they_are():
    """A drop, a ratio and a shortcut that are put in are seen; their absence is said."""
    found, seen = figure4_seen([fake(0.45 + 0.01 * k, 0.37 + 0.012 * k) for k in range(5)])
    assert (found["early"], found["late"]) == (40, 160)
    assert set(seen.values()) == {"HOLDS"}
    assert len(seen) == 8
    assert found["drop"].mean == pytest.approx(0.076)
    assert found["ratio"] == pytest.approx(50)
    found, seen = figure4_seen([fake(0.36, 0.37 + 0.01 * k, free=1.2) for k in range(5)])
    assert {what for what, status in seen.items() if status == "FAILS"} == {
        "best object probe between the ends, above both",
        "mean drop, 5 paired runs",
        "p of no drop (paired t)",
        "p of no drop, the 4 seeds not looked at before",
        "coefficients without penalty, ratio",
    }


def test_a_drop_without_penalty_too_is_not_figure_4():
    _, seen = figure4_seen([fake(0.45, 0.37 + 0.01 * k, free_late=0.37) for k in range(5)])
    assert [what for what, status in seen.items() if status == "FAILS"] == [
        "mean drop without penalty"
    ]


def test_a_drop_of_the_first_seed_alone_is_not_one():
    """The first seed was looked at before the length was set: the others must show it too."""
    runs = [fake(0.6, 0.3), *(fake(0.4 + 0.001 * k, 0.4) for k in (1, -1, 1, -1))]
    _, seen = figure4_seen(runs)
    assert seen["p of no drop, the 4 seeds not looked at before"] == "FAILS"


def test_coefficients_of_fits_that_did_not_settle_decide_nothing():
    runs = [fake(0.45 + 0.01 * k, 0.37 + 0.012 * k, settled=k > 0) for k in range(5)]
    found, seen = figure4_seen(runs)
    assert (found["free_fits"], found["free_settled"]) == (45, 36)
    assert not any("coefficients" in what for what in seen)
    args = ("scaled", SCALED, (10_000, 3_000))
    smaller, rests = tk24_dominoes_view.conditions(*args, found)
    assert smaller.ok is False
    assert rests.ok is None
    assert rests.detail == "36 of 45 did"
    drawn = tk24_dominoes_view.drawn_of(*args, [], found, "2^-5", [], "Chosen so.")
    assert any("36 of 45 fits settled" in words for words in drawn.summary)
    assert drawn.caption.endswith("Chosen so.")


@pytest.mark.parametrize("make", ["figure4", "figure8", "figure9", "figure10"])
@pytest.mark.parametrize("late", [0.37, 0.46])
def test_a_scaled_run_decides_nothing_about_the_paper(make, late, monkeypatch):
    """Neither a threshold met nor one missed by a smaller network is the paper's figure."""
    for name in ("require", "images_used"):
        monkeypatch.setattr(tk24_dominoes, name, lambda *_: (10_000, 3_000))
    monkeypatch.setattr(tk24_dominoes, "runs_of", lambda *_: [fake(0.45, late)] * 5)
    drawn = getattr(tk24_dominoes, make)(size="scaled", **SCALED)
    (unmet,) = [h for h in drawn.hypotheses if h.ok is False]
    assert "10,000 images instead of ResNet-18 on 50,000" in unmet.detail
    assert decide(drawn.seen, drawn.hypotheses) is Status.OUT_OF_SCOPE
    assert not drawn.found.possible
    assert any(words.startswith(("Seen:", "Not seen:")) for words in drawn.summary)


def test_runs_of_all_seeds(monkeypatch):
    asked = []
    monkeypatch.setattr(
        tk24_dominoes_run, "run", lambda variant, seed, *rest: asked.append((variant, seed)) or {}
    )
    runs_of("95 % match", SCALED)
    runs_of("cifar", SCALED)
    assert [seed for _, seed in asked] == [3313, 1998, 1900, 1608, 3585, 179]


def test_runs_another_process_is_at_come_last(monkeypatch, tmp_path):
    """Of five runs the first is taken: the other four are made before it is waited for."""
    pytest.importorskip("fcntl")
    asked = []
    monkeypatch.setattr(
        tk24_dominoes_run, "run", lambda variant, seed, *rest: asked.append(seed) or {"seed": seed}
    )
    place = place_of("small start", 3313, SCALED, tmp_path)
    place.mkdir()
    with alone_in(place):  # a lock of its own file description: as if of another process
        found = runs_of("small start", SCALED, tmp_path)
    assert asked == [1998, 1900, 1608, 3585, 3313]
    assert [r["seed"] for r in found] == [3313, 1998, 1900, 1608, 3585]

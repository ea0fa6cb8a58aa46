"""Files that are damaged or strange: tables, archives, stored runs, certificates, settings."""

import io
import json
import zipfile

import numpy as np
from damage import ODD, changed_bytes, changed_json


def table_text(rng):
    """A small table as text, with or without names, some of its cells odd."""
    n, d = int(rng.integers(1, 8)), int(rng.integers(1, 6))
    sign = ",;\t"[int(rng.integers(3))]
    rows = [[f"{v:.4g}" for v in rng.standard_normal(d)] for _ in range(n)]
    if rng.random() < 0.5:
        rows.insert(0, [f"c{i}" for i in range(d)])
    for _ in range(rng.integers(0, 3)):
        row = rows[int(rng.integers(len(rows)))]
        row[int(rng.integers(len(row)))] = ODD[int(rng.integers(len(ODD)))]
    return ("\n" if rng.random() < 0.8 else "\r\n").join(sign.join(row) for row in rows) + "\n"


def csv(rng, place):
    """Tables as text."""
    from reluflow import Problem

    data = table_text(rng).encode("utf-8", "replace")
    path = place / f"t.{'csv' if rng.random() < 0.7 else 'tsv'}"
    path.write_bytes(changed_bytes(data, rng) if rng.random() < 0.5 else data)
    Problem.from_table(path)


def npz(rng, place):
    """Archives of arrays: other types and shapes, damaged headers and members."""
    from reluflow import Problem

    path = place / "t.npz"
    n, d = (int(v) for v in rng.integers(0, 6, 2))
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n + int(rng.integers(0, 2)))
    kinds = ("f8", "f4", "i4", "?", "c16", "U3", "f2", "O")
    kind = kinds[int(rng.integers(len(kinds)))]
    file = io.BytesIO()
    if rng.random() < 0.3:
        np.savez(file, X=X.astype(kind), y=y)
    else:
        head = f"{{'descr': '<{kind[:1]}8', 'fortran_order': {rng.random() < 0.5}, 'shape': "
        head += ("(%d, %d)", "(%d%015d,)", "(-%d, %d)", "(%d.0, %d)")[int(rng.integers(4))] % (n, d)
        with zipfile.ZipFile(file, "w") as archive:
            text = (head + "}\n").encode()
            size = len(text).to_bytes(2, "little")
            archive.writestr("X.npy", b"\x93NUMPY\x01\x00" + size + text + X.tobytes())
            with archive.open("y.npy", "w") as member:
                np.lib.format.write_array(member, y)
    data = file.getvalue()
    path.write_bytes(changed_bytes(data, rng) if rng.random() < 0.6 else data)
    Problem.from_table(path)


_run = []


def nc(rng, place):
    """Stored runs."""
    from reluflow import Trajectory, datasets, descend, initialize

    path = place / "run.nc"
    if not _run:
        problem = datasets.three_points()
        run = descend(problem, initialize(problem, 4, rng=0), lr=0.1, steps=20, save=[0, 10, 20])
        run.save(path)
        _run.extend([path.read_bytes(), run])
    path.write_bytes(changed_bytes(_run[0], rng))
    back = Trajectory.load(path)
    assert back.loss.tobytes() == _run[1].loss.tobytes(), "damage was not noticed"


_certificate = []


def certificates(rng, place):
    """Certificates: read and checked, never believed when they are not what was written."""
    from reluflow import datasets
    from reluflow.optimum import certificates as make
    from reluflow.optimum.certificate_file import read_certificate
    from reluflow.optimum.checker import check_certificate

    if not _certificate:
        _certificate.extend(c.document() for c in make(datasets.golden(), None, ["min-norm"]))
        _certificate.extend(
            c.document() for c in make(datasets.figure1_left(), None, ["max-margin-linear"])
        )
    base = _certificate[int(rng.integers(len(_certificate)))]
    path = place / "c.json"
    if rng.random() < 0.7:
        path.write_text(json.dumps(changed_json(base, rng)))
    else:
        path.write_bytes(changed_bytes(json.dumps(base).encode(), rng))
    report = check_certificate(path)
    assert report.status in ("PROVED", "REJECTED", "CHECKED")
    read_certificate(path)


def toml_text(rng, sections):
    """A TOML file of known and unknown fields with values that fit, or do not."""
    values = (
        "1", "-1", "0", "1e-3", "nan", "inf", '"x"', '"three-points"', "true", "[]", "[1, 2]",
        "{}", "{from = 0, to = 1, num = 3}", "{from = 1, to = 0, step = 1e-9}",
        "10000000000000000000",
        '"""', "1979-05-27", "{value = [1]}", "[[1], [2]]", "9" * 30, "",
    )  # fmt: skip
    lines = []
    for name, fields in sections.items():
        if rng.random() < 0.7:
            if name:
                lines.append(f"[{name}]")
            for field in fields:
                if rng.random() < 0.12:
                    lines.append(f"{field} = {values[int(rng.integers(len(values)))]}")
    return "\n".join(lines) + "\n"


def toml(rng, place):
    """Configurations of runs and of sweeps."""
    from reluflow.cli.config import read_config
    from reluflow.cli.simulation import problem_of, start_of
    from reluflow.sweeps.config import read_config as read_sweep
    from reluflow.sweeps.grid import make_grid
    from reluflow.sweeps.tasks import resolve

    path = place / "c.toml"
    if rng.random() < 0.5:
        sections = {
            "data": ("source", "loss", "leak", "bias", "n", "rng"),
            "network": ("m", "scale", "log_scale", "seed", "kind", "signs"),
            "run": ("lr", "steps", "t_end", "rtol", "max_steps", "batch_size", "method"),
            "save": ("every", "geometric", "at", "observe"),
            "other": ("x",),
        }
        text = toml_text(rng, sections)
        if rng.random() < 0.5:
            text = text.replace("[data]", '[data]\nsource = "three-points"', 1)
            text = text if "[data]" in text else '[data]\nsource = "three-points"\n' + text
    else:
        sections = {
            "": ("task", "seeds", "seed", "observe", "pair", "shared", "keep", "out"),
            "problem": ("name", "loss", "leak"),
            "init": ("m", "scale"),
            "clock": ("t_end", "lr"),
            "plot": ("kind", "x", "y"),
        }
        text = toml_text(rng, sections)
        if rng.random() < 0.5:
            text = 'task = "flow"\n' + text
            text = text if "[problem]" in text else text + '[problem]\nname = "three-points"\n'
    data = text.encode()
    path.write_bytes(changed_bytes(data, rng) if rng.random() < 0.3 else data)
    if "task" in text:
        found, _ = read_sweep(path)
        grid = make_grid(found.grid, found.seeds, found.seed, found.pair, found.shared)
        resolve(found.task).check(grid, tuple(found.observe))
        grid.point(len(grid) - 1)
    else:
        config = read_config(path)
        start_of(config, problem_of(config))

"""Bad input of every kind: exit 2, one sentence, no traceback, nothing left behind."""

import subprocess
import sys
import zipfile

import h5py
import numpy as np
import pytest

GARBAGE = bytes(range(256)) * 8
GOOD = "a,b,y\n1,2,1\n2,1,-1\n-1,1,1\n"
TEXTS = {
    "good.csv": GOOD,
    "text.csv": "a,b,y\n1,red,1\n2,blue,-1\n",
    "nan.csv": "1,2,1\nnan,1,-1\n",
    "infinite.csv": "1,2,1\ninf,1,-1\n",
    "empty.csv": "",
    "header.csv": "a,b,y\n",
    "ragged.csv": "1,2,1\n1,2,3,1\n",
    "narrow.csv": "1\n2\n",
    "oneclass.csv": "1,2,1\n2,1,1\n",
    "onetwo.csv": "1,2,1\n2,1,2\n",
    "spaces.csv": "1 2 0\n2 1 0\n",
    "notes.txt": GOOD,
    "syntax.toml": "[data\nsource = 3",
    "section.toml": "[dta]\nsource = 'toy6'",
    "nosource.toml": "[network]\nm = 3",
    "field.toml": "[data]\nsource = 'toy6'\n[network]\nneurons = 3",
    "type.toml": "[data]\nsource = 'toy6'\n[network]\nm = 'many'",
    "float.toml": "[data]\nsource = 'toy6'\n[run]\nlr = 0.1\nsteps = 2.5",
    "steps.toml": "[data]\nsource = 'toy6'\n[run]\nsteps = 10",
    "both.toml": "[data]\nsource = 'toy6'\n[run]\nmethod = 'flow'\nlr = 0.1",
    "ends.toml": "[data]\nsource = 'toy6'\n[run]\nlr = 0.1\nsteps = 3\nt_end = 2.0",
    "save.toml": "[data]\nsource = 'toy6'\n[save]\nevery = 1\nat = [0, 1]",
    "late.toml": "[data]\nsource = 'toy6'\n[run]\nlr = 0.1\nsteps = 3\n[save]\nat = [0, 5]",
    "list.toml": "data = [1, 2]",
    "option.toml": "[data]\nsource = 'toy6'\ncolour = 'red'",
    "lost.toml": "[data]\nsource = 'lost.csv'",
    "kind.toml": "[data]\nsource = 'separable'\nn = 'many'",
}


@pytest.fixture
def files(tmp_path):
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    for name in ("garbage.csv", "garbage.npz", "garbage.nc", "garbage.toml"):
        (tmp_path / name).write_bytes(GARBAGE)
    for name in ("folder.csv", "folder.toml", "folder.nc"):
        (tmp_path / name).mkdir()
    np.savez(tmp_path / "noy.npz", X=np.eye(2))
    np.savez(tmp_path / "objects.npz", X=np.array([[{}]], dtype=object), y=np.ones(1))
    np.savez(tmp_path / "lengths.npz", X=np.eye(2), y=np.ones(3))
    with open(tmp_path / "huge.csv", "wb") as file:
        file.truncate(3 << 30)  # sparse: takes no room
    _claims_terabytes(tmp_path / "huge.npz")
    with h5py.File(tmp_path / "huge.nc", "w") as file:
        file.attrs["format"] = "reluflow-run-1"
        file.create_dataset("loss", (1 << 40,), dtype="f8", chunks=(1024,))
    whole = tmp_path / "cut.nc"
    with h5py.File(whole, "w") as file:
        file["loss"] = np.zeros(100_000)
    whole.write_bytes(whole.read_bytes()[:4000])
    with h5py.File(tmp_path / "other.nc", "w") as file:
        file["loss"] = np.zeros(3)
    return tmp_path


def _claims_terabytes(path):
    """An .npz whose header promises more than the file has."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, shape in (("X.npy", (1000000, 1000000)), ("y.npy", (1000000,))):
            head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
            head = head.ljust(117) + b"\n"
            archive.writestr(name, b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)


CASES = [
    # the words on the line
    ("nonsense", "No such command 'nonsense'"),
    ("predict", "Missing argument 'DATA'"),
    ("predict toy6 golden", "unexpected extra argument"),
    ("predict toy6 --fast", "No such option: --fast"),
    ("predict toy6 --m many", "--m"),
    ("simulate toy6 --lr", "--lr"),
    # data
    ("predict thre-points", "unknown dataset 'thre-points'"),
    ("predict missing.csv", "missing.csv does not exist"),
    ("predict folder.csv", "folder.csv is a folder"),
    ("predict notes.txt", "is not a table this library reads"),
    ("predict text.csv", "line 2 column 2 holds 'red'"),
    ("predict nan.csv", "has 1 blank cell in 1 row, the first at line 2 column 1: fill it"),
    ("simulate infinite.csv", "line 2 column 1 holds inf"),
    ("predict empty.csv", "empty.csv is empty"),
    ("predict header.csv", "a header but no samples"),
    ("predict ragged.csv", "line 2 has 4 columns, expected 3"),
    ("predict narrow.csv", "has 1 column"),
    ("predict oneclass.csv --loss logistic", "one class only"),
    ("simulate onetwo.csv --loss exponential", "say which is +1 with classes= (--classes 2,1)"),
    ("predict garbage.csv", "garbage.csv is not text"),
    ("predict garbage.npz", "not a readable .npz"),
    ("predict noy.npz", "has no array 'y'"),
    ("predict objects.npz", "objects are never unpickled"),
    ("predict lengths.npz", "y has 3 labels but X has 2 samples"),
    ("predict huge.csv", "3,221,225,472 bytes, more than max_bytes"),
    ("predict huge.npz", "needs 8,000,000,000,000 bytes"),
    ("predict good.csv --with max_bytes=5", "more than max_bytes=5"),
    # the problem and the start
    ("predict toy6 --loss hinge", "hinge"),
    ("predict toy6 --leak 1", "0 <= leak < 1, got 1"),
    ("predict toy6 --reduction median", "reduction must be 'mean' or 'sum'"),
    ("predict toy6 --bias 1", "toy6 has no option 'bias'"),
    ("predict good.csv --bias 0", "bias must be a finite non-zero number"),
    ("predict toy6 --m -3", "--m must be greater than or equal to 1, got -3"),
    ("simulate toy6 --m 0", "--m must be greater than or equal to 1, got 0"),
    ("simulate toy6 --m 10000000000000", "numbers, more than the"),
    ("predict toy6 --scale 0", "--scale must be greater than 0"),
    ("predict toy6 --scale nan", "--scale must be"),
    ("predict toy6 --scale 1e-3 --log-scale -7", "contradict each other"),
    ("predict toy6 --kind large", "unknown kind 'large'"),
    ("predict toy6 --seed -1", "--seed must be"),
    ("predict toy6 --width infinite --m 5", "--width infinite and --m contradict"),
    ("predict toy6 --width 5", "--width is infinite or left out"),
    ("predict toy6 --with n", "--with takes NAME=VALUE"),
    ("predict toy6 --loss square --with loss=logistic", "contradict each other"),
    ("predict separable --with n=0.5", "n must be a whole number"),
    ("predict toy6 --max-seconds 0", "--max-seconds must be positive"),
    ("predict toy6 --image-shape 3x -o out", "must be ROWSxCOLUMNS"),
    ("predict toy6 --image-shape 3x3 -o out", "2 features are not 3 x 3 pixels"),
    ("predict toy6 --image-shape 1x2", "give a folder for them with -o"),
    # the run
    ("simulate toy6 --steps 10", "steps counts gradient steps"),
    ("simulate toy6 --lr 0.1", "gradient descent needs steps"),
    ("simulate toy6 --lr 0.1 --steps 5 --t-end 3", "t_end belongs to gradient flow"),
    ("simulate toy6 --t-end -1", "--t-end must be"),
    ("simulate toy6 --lr -0.1 --steps 5", "lr"),
    ("simulate toy6 --lr 0.1 --steps 5 --batch-size 100", "batch_size"),
    ("simulate toy6 --rtol 1", "--rtol must be"),
    ("simulate toy6 --clock sun", "--clock must be 'time' or 'loss'"),
    ("simulate toy6 --t-end 1 --observe colour", "unknown observable 'colour'"),
    ("simulate toy6 --every 1 --geometric 1.1", "every and geometric contradict"),
    ("simulate toy6 --geometric 0.5", "--geometric must be greater than 1"),
    ("simulate toy6 --lr .1 --steps 99999999 --m 1000 --every 1", "99,999,999 records of 1,000"),
    ("simulate toy6 --t-end 1 --animation film.avi", "an animation is a .gif or .mp4"),
    # configurations
    ("simulate missing.toml", "missing.toml does not exist"),
    ("simulate folder.toml", "folder.toml is a folder"),
    ("simulate garbage.toml", "garbage.toml is not text"),
    ("simulate syntax.toml", "syntax.toml is not valid TOML"),
    ("simulate section.toml", "[dta] is unknown: expected one of data, network, run, save"),
    ("simulate nosource.toml", "[data] is missing"),
    ("simulate field.toml", "[network] neurons is unknown: expected one of m, scale"),
    ("simulate type.toml", "[network] m must be a valid integer, got 'many'"),
    ("simulate float.toml", "[run] steps must be a valid integer"),
    ("simulate steps.toml", "steps.toml: [run] steps counts gradient steps"),
    ("simulate both.toml", "lr belongs to gradient descent"),
    ("simulate ends.toml", "t_end belongs to gradient flow"),
    ("simulate save.toml", "every and at contradict each other"),
    ("simulate late.toml", "outside 0 .. 3"),
    ("simulate list.toml", "[data] must be a section"),
    ("simulate option.toml", "toy6 has no option 'colour'"),
    ("simulate lost.toml", "lost.csv does not exist"),
    ("simulate kind.toml", "n must be a whole number"),
    # where to write
    ("simulate toy6 --t-end 1 -o run.txt", "stored in a .nc file"),
    ("simulate toy6 --t-end 1 -o folder.nc", "folder.nc is a folder"),
    ("simulate toy6 --t-end 1 -o good.csv/run.nc", "cannot write into good.csv"),
    ("simulate toy6 --t-end 1 -o garbage.nc", "garbage.nc exists and is not a run"),
    ("predict toy6 -o good.csv", "cannot write into good.csv"),
    ("predict toy6 -o good.csv/out", "cannot write into good.csv"),
    ("reproduce BF24 F2 --quick -o good.csv/out", "cannot write into good.csv"),
    # explain
    ("explain", "Missing argument 'DATA'"),
    ("explain toy6 golden", "unexpected extra argument"),
    ("explain thre-points", "unknown dataset 'thre-points'"),
    ("explain missing.csv", "missing.csv does not exist"),
    ("explain folder.csv", "folder.csv is a folder"),
    ("explain notes.txt", "is not a table this library reads"),
    ("explain garbage.nc", "is not a table this library reads"),
    ("explain text.csv", "line 2 column 2 holds 'red'"),
    ("explain nan.csv", "has 1 blank cell in 1 row, the first at line 2 column 1: fill it"),
    ("explain infinite.csv", "line 2 column 1 holds inf"),
    ("explain empty.csv", "empty.csv is empty"),
    ("explain header.csv", "a header but no samples"),
    ("explain ragged.csv", "line 2 has 4 columns, expected 3"),
    ("explain narrow.csv", "has 1 column"),
    ("explain spaces.csv", "separated by spaces: expected commas, semicolons or tabs"),
    ("predict ideal-xor --with smoothing=0.1", "--with smoothing=0)"),
    ("claims BF24 --scaled", "--scaled is about running experiments: give --run"),
    ("claims BF24 --seeds 3", "--seeds is about running experiments: give --run"),
    ("explain oneclass.csv --loss logistic", "one class only"),
    ("explain onetwo.csv --loss exponential", "say which is +1 with classes= (--classes 2,1)"),
    ("explain garbage.csv", "garbage.csv is not text"),
    ("explain garbage.npz", "not a readable .npz"),
    ("explain objects.npz", "objects are never unpickled"),
    ("explain lengths.npz", "y has 3 labels but X has 2 samples"),
    ("explain huge.csv", "more than max_bytes"),
    ("explain huge.npz", "needs 8,000,000,000,000 bytes"),
    ("explain toy6 --loss hinge", "hinge"),
    ("explain toy6 --leak -1", "0 <= leak < 1, got -1"),
    ("explain good.csv --bias 0", "bias must be a finite non-zero number"),
    ("explain toy6 --loss square --with loss=logistic", "contradict each other"),
    ("explain toy6 --m 0", "at least 1 neuron, got 0"),
    ("explain toy6 --m 10000000000000", "more than the 50,000,000 that explain holds"),
    ("explain toy6 --scale 0", "scale must lie between 0 and 1, got 0"),
    ("explain toy6 --scale 5", "scale must lie between 0 and 1, got 5"),
    ("explain toy6 --scale nan", "scale must lie between 0 and 1, got nan"),
    ("explain toy6 --seed -1", "--seed"),
    ("explain toy6 --lr 0", "lr must be a positive step size"),
    ("explain toy6 --steps 10", "steps were given without lr"),
    ("explain toy6 --lr 0.1 --steps 0", "steps must be at least 1"),
    ("explain toy6 --seconds 0", "seconds must be positive"),
    ("explain toy6 --seconds nan", "seconds must be positive"),
    ("explain toy6 --image-shape 28", "must be ROWSxCOLUMNS"),
    ("explain toy6 --image-shape 28x28", "784 pixels but the data have 2 features"),
    ("explain toy6 -o good.csv", "cannot write into good.csv"),
    ("explain toy6 -o good.csv/out", "cannot write into good.csv"),
    # stored runs
    ("certify missing.nc", "missing.nc does not exist"),
    ("certify folder.nc", "is not a file"),
    ("certify garbage.nc", "cannot be read as a stored run"),
    ("certify cut.nc", "cannot be read as a stored run"),
    ("certify other.nc", "is not a run of format"),
    ("certify huge.nc", "8796093022208 bytes, more than max_bytes"),
    ("certify nan.csv", "has 1 blank cell in 1 row, the first at line 2 column 1: fill it"),
    ("certify toy6 --claims XY99", "XY99"),
    ("certify toy6 --loss hinge", "hinge"),
    ("certify toy6 --leak 1", "0 <= leak < 1, got 1"),
    ("certify toy6 --reduction max", "max"),
    ("certify good.csv --bias 0", "bias must be a finite non-zero number"),
    ("certify toy6 --with n", "--with takes NAME=VALUE"),
    ("certify toy6 --loss square --with loss=logistic", "contradict each other"),
    ("certify missing.nc --leak 0.1", "--leak changes data, and missing.nc is a stored run"),
    # other commands
    ("sweep missing.toml", "missing.toml"),
    ("sweep syntax.toml", "syntax.toml"),
    ("sweep garbage.toml", "garbage.toml"),
    ("sweep folder.toml", "folder.toml"),
    ("sweep show missing.parquet", "missing.parquet"),
    ("sweep plot good.csv", "good.csv"),
    ("claims BF25", "unknown paper or claim 'BF25'"),
    ("claims --seed -1", "--seed"),
    ("reproduce BF25", "unknown paper 'BF25'"),
    ("reproduce --quick --full", "contradict each other"),
    ("bench speed", "no benchmark 'speed'"),
]


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(("line", "message"), CASES, ids=[line for line, _ in CASES])
def test_one_sentence_exit_2_nothing_left(cli, files, line, message):
    before = tree(files)
    done = cli(*line.split())
    assert done.code == 2, done.out
    assert done.err.startswith("reluflow: ")
    assert done.err.count("\n") == 1, done.err
    assert message in done.err
    assert done.out == ""
    assert tree(files) == before


@pytest.mark.parametrize(
    "line", ["predict nan.csv", "simulate syntax.toml", "certify other.nc", "predict --fast"]
)
def test_the_same_from_a_shell(files, line):
    command = [sys.executable, "-m", "reluflow.cli.main", *line.split()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=files)
    assert done.returncode == 2
    assert done.stderr.startswith("reluflow: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_unforeseen_trouble_with_files_is_a_sentence_too(cli, monkeypatch):
    import reluflow.problem.datasets as datasets

    def full(*arguments, **options):
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(datasets, "load", full)
    done = cli("predict", "toy6")
    assert done.code == 2
    expected = "reluflow: cannot read or write somewhere: No space left on device\n"
    assert done.err == expected

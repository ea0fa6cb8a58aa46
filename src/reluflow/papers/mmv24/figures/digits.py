"""[MMV24]_: fifty neurons on pairs of MNIST digits, and Figures 12 and 13 of their changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.verdict import at_least, at_most
from reluflow.descent import descend
from reluflow.errors import ReluflowError
from reluflow.gradientflow.flow import flow
from reluflow.network import Network, initialize
from reluflow.papers.figure import Drawn, Skipped, figure
from reluflow.plot.traces import Image, Line, Panel, Picture, Rule, Trace
from reluflow.problem import Problem, datasets
from reluflow.trajectory import Trajectory
from reluflow.trajectory.observables import Observable, cosines

WIDTH, STD, LR, STEPS = 50, 1e-6, 2e-3, 15_000
EVERY = 50  # steps between records
DRAWN = 300  # images of each digit in the heat map


def digits(positive: int, negative: int, per_class: int | None) -> Problem:
    """A centred pair of digits, mean exponential loss; Skipped where the files are not."""
    try:
        return datasets.mnist_pair(positive, negative, per_class=per_class)
    except ReluflowError as error:
        raise Skipped(str(error)) from None


def small_start(problem: Problem, seed: int) -> Network:
    """Fifty neurons, inner and outer weights from N(0, 1e-12)."""
    return initialize(problem, WIDTH, scale=STD, kind="gaussian", normalize="none", rng=seed)


def class_sums(problem: Problem) -> Array:
    """x_+ and x_-, the sums of the inputs of each class; rows."""
    return np.array([problem.X[problem.y == s].sum(axis=0) for s in (1.0, -1.0)])


def mean_neurons(net: Network) -> Array:
    """Mean of w_j over a_j > 0 and over a_j < 0; rows, zero for an empty group."""
    W, a = net.weights()
    return np.array([W[a * s > 0].sum(axis=0) / max((a * s > 0).sum(), 1) for s in (1.0, -1.0)])


def mean_cosines(problem: Problem, net: Network) -> Array:
    """Cosine of each mean neuron with the sum of its class."""
    means, sums = mean_neurons(net), class_sums(problem)
    size = np.linalg.norm(means, axis=1) * np.linalg.norm(sums, axis=1)
    along = np.sum(means * sums, axis=1)
    return np.asarray(np.divide(along, size, out=np.zeros(2), where=size > 0))


def images_to_draw(problem: Problem) -> Problem:
    """A few hundred images of each digit, evenly taken, the positive digit first."""
    rows = [np.flatnonzero(problem.y == s) for s in (1.0, -1.0)]
    taken = [r[np.linspace(0, len(r) - 1, min(DRAWN, len(r))).astype(int)] for r in rows]
    keep = np.concatenate(taken)
    return problem.replace(X=problem.X[keep], y=problem.y[keep], known={})


def heat_map(few: Problem) -> Panel:
    """Inner products of images, ordered by label."""
    K = few.X @ few.X.T
    limit = float(np.quantile(np.abs(K), 0.98))
    return Panel(
        [Image(np.clip(K, -limit, limit), bar=True)],
        "inner products, by label",
        axes=False,
        equal=True,
    )


def right_pairs(problem: Problem) -> tuple[float, list[float]]:
    """Share of signed pairs y_i y_k <x_i, x_k> > 0 among the images drawn, and by block.

    Blocks are both digits with themselves, then one with the other.
    """
    few = images_to_draw(problem)
    right = np.outer(few.y, few.y) * (few.X @ few.X.T) > 0
    one = few.y > 0
    blocks = [right[np.ix_(a, b)] for a, b in ((one, one), (~one, ~one), (one, ~one))]
    return float(right.mean()), [float(block.mean()) for block in blocks]


@dataclass(frozen=True, eq=False)
class Course:
    """A run on a pair of digits; ``steps`` is flow time over lr where it is a flow."""

    problem: Problem
    run: Trajectory
    name: str

    @cached_property
    def steps(self) -> Array:
        """Iteration of each record."""
        return self.run.times / LR

    @cached_property
    def groups(self) -> Array:
        """Cosines of every neuron with the sum of the class of its sign, nan for the other
        class; (2, records, m)."""
        cosine, outer = self.run["cosines"], self.run["outer"]
        return np.array(
            [np.where(s * outer > 0, cosine[:, :, i], np.nan) for i, s in enumerate((1.0, -1.0))]
        )

    def at(self, step: float) -> int:
        """Record nearest to an iteration."""
        return int(np.argmin(np.abs(self.steps - step)))

    def least_cosine(self, step: float) -> float:
        """Smallest cosine of a neuron with the sum of its class."""
        return float(np.nanmin(self.groups[:, self.at(step)]))

    def share_aligned(self, step: float) -> float:
        """Share of neurons whose cosine with the sum of their class is at least 0.9."""
        values = self.groups[:, self.at(step)]
        return float(np.mean(values[~np.isnan(values)] >= 0.9))

    def falls_below(self, loss: float) -> float:
        """Iteration at which the loss falls below a level, linear between records; inf if never."""
        below = self.run.loss < loss
        if not below.any():
            return np.inf
        i = int(np.argmax(below))
        if i == 0:
            return float(self.steps[0])
        (x0, x1), (y0, y1) = self.steps[i - 1 : i + 1], self.run.loss[i - 1 : i + 1]
        return float(x0 + (x1 - x0) * (y0 - loss) / (y0 - y1))


def _observables(problem: Problem) -> list[Observable | str]:
    return [
        cosines(class_sums(problem)),
        "outer",
        "stable_rank",
        "spectral_norm",
        Observable("mean_cosines", mean_cosines, ("class",)),
    ]


@cache
def course(
    pair: tuple[int, int], per_class: int | None, method: str, seed: int = 0, steps: int = STEPS
) -> Course:
    """Descent or flow from N(0, 1e-12) weights, with what the figures show.

    Descent is in single precision, as such networks are usually trained.
    """
    problem = digits(*pair, per_class)
    net = small_start(problem, seed)
    seen = _observables(problem)
    if method == "descent":
        run = descend(
            problem,
            net,
            lr=LR,
            steps=steps,
            save=range(0, steps + 1, EVERY),
            observe=seen,
            backend="dense",
            dtype="float32",
        )
    else:
        times = LR * np.arange(0, steps + 1, EVERY)
        run = flow(problem, net, t_end=LR * steps, save=times, observe=seen, kinks=False)
    return Course(problem, run, method)


IMAGES, BATCH = 12_665, 2_000  # of the paper's training set
MEASURED = ("change_norms", "change_directions")
OPEN = (
    "The paper does not say for how many epochs it trains, nor which loss: here the mean "
    "exponential loss. Both changes are those of the full gradient, as in its Appendix A.5."
)


def batches(problem: Problem) -> tuple[int, int]:
    """Size of a batch, and batches in an epoch: 2,000 images of the whole training set, the same
    share of fewer images, so that an epoch has seven."""
    size = max(1, round(BATCH * problem.n / IMAGES))
    return size, -(-problem.n // size)


def descend_by_batches(
    net: Network, problem: Problem, seed: int, save: Sequence[int], train: str = "both"
) -> Trajectory:
    """Descent by mini-batches in single precision, with the changes of norms and directions."""
    return descend(
        problem,
        net,
        lr=LR,
        steps=save[-1],
        batch_size=batches(problem)[0],
        rng=seed,
        save=save,
        observe=MEASURED,
        train=train,
        backend="dense",
        dtype="float32",
    )


def panels_of(run: Trajectory, x: Array, xlabel: str) -> list[Panel]:
    """Loss and both changes against x, with the peaks of the changes marked."""
    titles = {"change_norms": "change of norms", "change_directions": "change of directions"}
    made = [Panel([Line(x, run.loss, "", "tab:blue")], "loss", xlabel, "loss", ylim=(0.0, 1.05))]
    for name, colour in zip(MEASURED, ("tab:red", "tab:green"), strict=True):
        value = np.where(run[name] > 0, run[name], np.nan)
        peak = float(x[int(np.nanargmax(value))])
        traces: list[Trace] = [Line(x, value, "", colour)]
        if peak > 0:
            side = "right" if peak < 0.5 * x[-1] else "left"
            traces.append(Rule(peak, text=f"peak at {peak:.3g}", dash=":", place=0.12, side=side))
        made.append(Panel(traces, titles[name], xlabel, titles[name], yscale="log"))
    return made


def peaks(run: Trajectory) -> dict[str, int]:
    """Iteration of the largest value of each change."""
    return {name: int(run.steps[int(np.argmax(run[name]))]) for name in MEASURED}


@figure(
    "MMV24",
    "F12",
    title="MNIST 0 and 1 by mini-batches: directions change first, norms later",
    quick={"per_class": 300, "epochs": 600, "every": 10},
    full={"per_class": None, "epochs": 600, "every": 5},
)
def figure12(*, per_class: int | None, epochs: int, every: int, seed: int = 0) -> Drawn:
    """Figure 12: SGD on both layers from small weights has two phases."""
    problem = digits(1, 0, per_class)
    size, per_epoch = batches(problem)
    save = range(0, per_epoch * epochs + 1, per_epoch * every)
    run = descend_by_batches(small_start(problem, seed), problem, seed, save)
    top = peaks(run)
    grown = int(run.steps[int(np.argmax(run.loss < 0.9))])
    directions = run["change_directions"]
    late = float(directions[int(np.argmax(run.loss < 0.9))] / directions.max())
    seen = [
        at_least(
            top["change_norms"] - top["change_directions"],
            1000,
            what="peak of norms after that of directions (iterations)",
        ),
        at_least(run.loss[int(np.argmax(directions))], 0.99, what="loss at the peak of directions"),
        at_most(late, 0.2, what="change of directions once the loss falls, over its peak"),
        at_most(run.loss[-1], 0.3, what="loss at the end"),
    ]
    numbers = {
        "batch_size": size,
        "batches_per_epoch": per_epoch,
        "peaks": top,
        "loss_below_0.9": grown,
        **{name: run[name].tolist() for name in MEASURED},
        "loss": run.loss.tolist(),
        "steps": run.steps.tolist(),
    }
    summary = [
        f"Directions change most at iteration {top['change_directions']:,} (epoch "
        f"{top['change_directions'] // per_epoch}), norms at {top['change_norms']:,} (epoch "
        f"{top['change_norms'] // per_epoch}); the loss falls below 0.9 by {grown:,}."
    ]
    caption = (
        f"{OPEN} {problem.n:,} images in batches of {size:,}, {per_epoch} of them an epoch, "
        f"measured every {every} epochs."
    )
    panels = panels_of(run, run.steps / per_epoch, "epoch")
    return Drawn([Picture(panels, 3, width=4.8, height=3.6)], numbers, summary, seen, caption)


@figure(
    "MMV24",
    "F13",
    title="MNIST 0 and 1, inner weights alone: no phase of alignment",
    quick={"per_class": 300, "epochs": 100},
    full={"per_class": None, "epochs": 100},
)
def figure13(*, per_class: int | None, epochs: int, seed: int = 0) -> Drawn:
    """Figure 13: with outer weights fixed at +-1 norms grow and the loss falls at once."""
    problem = digits(1, 0, per_class)
    size, per_epoch = batches(problem)
    small = small_start(problem, seed)
    save = np.union1d(np.arange(21), np.arange(0, per_epoch * epochs + 1, per_epoch)).tolist()
    net = Network(small.W, np.sign(small.a))
    run = descend_by_batches(net, problem, seed, save, train="first")
    top = peaks(run)
    seen = [
        at_most(run.loss[1], 0.9, what="loss after one step"),
        at_most(run.loss[10], 0.5, what="loss after ten steps"),
        at_most(top["change_norms"], 10, what="peak of the change of norms (iteration)"),
        at_most(top["change_directions"], 1, what="peak of the change of directions (iteration)"),
    ]
    numbers = {
        "loss_after_1": float(run.loss[1]),
        "loss_after_10": float(run.loss[10]),
        "peaks": top,
        **{name: run[name][:11].tolist() for name in MEASURED},
    }
    summary = [
        f"One step takes the loss from 1 to {run.loss[1]:.2f}, ten to {run.loss[10]:.2f}; norms "
        f"change most at iteration {top['change_norms']}, within the first of {epochs} epochs."
    ]
    caption = (
        f"{OPEN} Outer weights are +-1 and stay. {problem.n:,} images in batches of {size:,}, "
        f"{per_epoch} of them an epoch; measured after each of the first 20 steps, then after "
        "every epoch."
    )
    panels = panels_of(run, run.steps / per_epoch, "epoch")
    return Drawn([Picture(panels, 3, width=4.8, height=3.6)], numbers, summary, seen, caption)

"""Claims about runs that went on without locating kinks, at a coarser tolerance."""

import numpy as np

from reluflow import Problem, certify, flow, initialize
from reluflow.claims.verdict import Status


def test_what_the_errors_of_steps_may_have_done_is_undecided():
    rng = np.random.default_rng(1)
    problem = Problem(rng.normal(size=(30, 3)), rng.normal(size=30))
    net = initialize(problem, 20, scale=1e-2, rng=0)
    save = np.linspace(0.0, 60.0, 31)
    run = flow(problem, net, t_end=60.0, save=save, rtol=1e-8, max_landings=0)
    assert run.settings["handovers"]
    located = flow(problem, net, t_end=60.0, save=save, rtol=1e-8)
    for made, status in ((run, Status.UNDECIDED), (located, Status.HOLDS)):
        (verdict,) = [v for v in certify(problem, made, ["BF24-L1"]) if v.form == "stated"]
        assert verdict.status is status

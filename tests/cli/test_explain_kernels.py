"""Kernels that a first explanation compiles beside the prediction."""

import subprocess
import sys
from importlib import import_module

import pytest
from numba import typeof

from reluflow import datasets, flow, initialize
from reluflow.gradientflow import warm as explain_kernels
from reluflow.gradientflow.warm import FlowKernels, is_compiled, largest_kernels, one_step


def test_the_worker_compiles_what_a_flow_calls():
    problem = datasets.load("three-points")
    flow(problem, initialize(problem, 20, 1e-6, rng=0), progress=False)
    for kernel, given in largest_kernels():
        assert tuple(map(typeof, given)) in kernel.signatures, kernel.py_func.__name__
        assert is_compiled(kernel)


def test_one_step_leaves_the_largest_alone(monkeypatch):
    trial = import_module("reluflow.gradientflow.trial")

    def never(*_):
        raise AssertionError("would be compiled twice")

    for name in ("scan", "trace_some"):
        monkeypatch.setattr(trial, name, never)
    one_step()


def test_nothing_is_started_when_the_cache_has_them(monkeypatch):
    monkeypatch.setattr(explain_kernels, "is_compiled", lambda kernel: True)
    with FlowKernels() as kernels:
        assert not kernels.busy
        kernels.wait()


def test_nothing_is_started_when_no_flow_is_run(monkeypatch):
    monkeypatch.setattr(explain_kernels, "is_compiled", lambda kernel: False)
    assert not FlowKernels(needed=False).busy


@pytest.fixture
def sleeper(monkeypatch):
    started = []

    def popen(command, **streams):
        assert command == [sys.executable, "-m", "reluflow.gradientflow.warm"]
        worker = real([sys.executable, "-c", "import time; time.sleep(600)"], **streams)
        started.append(worker)
        return worker

    real = subprocess.Popen
    monkeypatch.setattr(explain_kernels, "is_compiled", lambda kernel: False)
    monkeypatch.setattr(explain_kernels.subprocess, "Popen", popen)
    yield started
    for worker in started:
        worker.kill()


def test_the_worker_ends_with_the_explanation(sleeper):
    with FlowKernels() as kernels:
        assert kernels.busy
    assert sleeper[0].poll() is not None


def test_a_worker_that_fails_is_no_obstacle(sleeper):
    with FlowKernels() as kernels:
        sleeper[0].kill()
        kernels.wait()
        assert not kernels.busy

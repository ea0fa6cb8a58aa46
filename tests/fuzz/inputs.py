"""Damaged and strange inputs, by the hundred: none may end in a traceback, a hang or 4 GB.

    python inputs.py KIND COUNT SEED FOLDER [FIRST]

runs in a process of its own with limits on memory and, for each input, on processor time. It prints
the number of each input before it is tried, so that the last one tells where it ended, and at the
end how many were refused.
"""

import os
import resource
import signal
import sys
from pathlib import Path

import calls
import files
import numpy as np
import resuming

MEMORY, SECONDS = 4 << 30, 20
KINDS = {
    "csv": files.csv,
    "npz": files.npz,
    "nc": files.nc,
    "certificates": files.certificates,
    "toml": files.toml,
    "arguments": calls.arguments,
    "labels": calls.labels,
    "estimators": calls.estimators,
    "studio": calls.studio,
    "checkpoints": resuming.checkpoints,
    "journals": resuming.journals,
    "reports": resuming.reports,
}


def most_memory():
    """Bytes of address space that this process has had at most, used or not."""
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmPeak"))


def main(kind, count, seed, folder, first=0):
    """Try inputs of a kind; how many were refused is printed.

    The limit of the system is twice ours: what was asked for between the two is seen even where
    an error of memory would have become a sentence.
    """
    from reluflow import ReluflowError

    place = Path(folder)
    os.chdir(place)
    resource.setrlimit(resource.RLIMIT_AS, (2 * MEMORY, 2 * MEMORY))
    refused = 0
    for number in range(first, first + count):
        rng = np.random.default_rng([seed, number])
        print(f"input {number}", flush=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # ends the process, wherever it is
        sentence = ""
        try:
            KINDS[kind](rng, place)
        except ReluflowError as error:
            sentence = str(error)
        refused += sentence != ""
        assert "\n" not in sentence, f"input {number}: {sentence}"
        assert most_memory() < MEMORY, f"input {number} took {most_memory():,} bytes"
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(f"refused {refused} of {count}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], *map(int, sys.argv[5:]))

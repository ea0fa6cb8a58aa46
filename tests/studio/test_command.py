"""The command: its first line is the address, bad input is one sentence and exit 2."""

import re
import subprocess
import sys

import pytest


def refused(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "reluflow", "studio", *arguments, "--no-open"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    return done.stderr


def test_the_first_line_is_the_address_with_its_token(studio):
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]{30,}", studio.address)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no-such-set",), "unknown dataset 'no-such-set'"),
        (("nothing.csv",), "nothing.csv does not exist"),
        (("golden", "--port", "70000"), "--port must lie between 0 and 65535"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(arguments, words):
    said = refused(*arguments)
    assert words in said
    assert said.count("\n") == 1


def test_a_port_that_is_taken_is_refused(studio):
    assert f"port {studio.port} cannot be used" in refused("golden", "--port", str(studio.port))

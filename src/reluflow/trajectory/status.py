"""How a run ended: a code for programs, a sentence for people."""

from __future__ import annotations


class Status(str):
    """A sentence with a short code.

    Parameters
    ----------
    code : str
        One word, for programs.
    sentence : str
        For readers.
    ok : bool
        True when the run did what was asked.

    Examples
    --------
    >>> status = Status("finished", "All 10 steps were taken.")
    >>> status.code, str(status)
    ('finished', 'All 10 steps were taken.')
    """

    code: str
    ok: bool

    def __new__(cls, code: str, sentence: str, ok: bool = True) -> Status:
        self = super().__new__(cls, sentence)
        self.code, self.ok = code, ok
        return self

    def __getnewargs__(self) -> tuple[str, str, bool]:  # type: ignore[override]
        return self.code, str(self), self.ok

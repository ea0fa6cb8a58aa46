"""Exceptions: a message is one sentence that says what, what was expected, and the remedy."""


class ReluflowError(ValueError):
    """Input that cannot be used; the message is one sentence a user can act on.

    It stays on one line, whatever it quotes of a file.

    Parameters
    ----------
    message : object
        What, expected, got, remedy.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(" ".join(str(message).splitlines()))


class MissingEvidence(ReluflowError):
    """A check asked a run for something it did not record."""

"""Exceptions: a message is one sentence that says what, what was expected, and the remedy."""


class ReluflowError(ValueError):
    """Input that cannot be used; the message is one sentence a user can act on."""


class MissingEvidence(ReluflowError):
    """A check asked a run for something it did not record."""

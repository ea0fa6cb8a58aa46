"""The one exception the library raises for bad input: what, expected, got, remedy."""


class ReluflowError(ValueError):
    """Input that cannot be used; the message is one sentence a user can act on."""

"""One module per command; each is found and loaded by its presence here."""

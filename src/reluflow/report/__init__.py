"""Pages made of text, tables and the pictures of :mod:`reluflow.plot`."""

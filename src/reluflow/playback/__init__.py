"""Recorded runs and the front end that plays them.

A run is recorded as a *recording*: curves (loss, sizes, f on a grid) and the neurons of every
frame, packed so that 200,000 of them move in a browser. The front end in ``static/`` is plain ES
modules without a build step, written against the module interface of anywidget
(``export default {render({model, el})}``). `reluflow.studio` serves it to a page and to a notebook;
`snippet` puts it, with one recording, into a file that plays offline, such as report.html.
"""

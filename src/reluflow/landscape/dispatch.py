"""The public functions of the landscape: for one output, or for several."""

from reluflow.landscape import align_multioutput, multioutput
from reluflow.landscape.align import align as _align
from reluflow.landscape.extremal import extremal_vectors as _extremal_vectors
from reluflow.runtime.dispatch import by_outputs

align = by_outputs(_align, align_multioutput.align)
extremal_vectors = by_outputs(_extremal_vectors, multioutput.extremal_vectors)

"""The public functions about optima: for one output, or for several."""

from reluflow.optimum import multioutput
from reluflow.optimum.kkt import kkt as _kkt
from reluflow.optimum.max_margin import max_margin as _max_margin
from reluflow.optimum.min_norm import min_norm as _min_norm
from reluflow.optimum.stationarity import stationarity as _stationarity
from reluflow.runtime.dispatch import by_outputs

kkt = by_outputs(_kkt, multioutput.kkt)
max_margin = by_outputs(_max_margin, multioutput.max_margin)
min_norm = by_outputs(_min_norm, multioutput.min_norm)
stationarity = by_outputs(_stationarity, multioutput.stationarity)

"""Random numbers of one batch after another: an operator that DALI has on a GPU only."""

from cases.gpu_alone import by_numpy
from record import case, fn, noise, source, types

BATCHES = [4, 2, 3]


@case(
    inputs={"X": noise(*[(5, 6, 3)] * 9)},
    batch_size=4,
    batches=BATCHES,
    answer=by_numpy(BATCHES, seed=21, degree=4, fill=0),
)
def jitter():
    return fn.jitter(source("X", types.UINT8, layout="HWC").gpu(), seed=21, nDegree=4)

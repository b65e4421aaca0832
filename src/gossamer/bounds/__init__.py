"""Every theorem of the papers, once, as a pure function from its assumptions to its bound.

`ALL` maps each name to its function, its source and its assumptions on the stream and the learner; assumptions on the
numbers alone are validated. The inputs are measured with a `Comparator`. A mistake is y f(x) <= 0 and a margin
error y f(x) <= margin, of the score made before the label was used; all learners start at f = 0 and have no offset.
Corrections to the papers follow ALGORITHMS 12 and 14.

>>> len(ALL), ALL["norma_regret"].source
(37, 'Kivinen et al. 2004, Theorem 4')
"""

from gossamer.bounds.comparators import (
    Comparator,
    Rivals,
    cumulative_risk,
    largest_kappa,
    log_det,
    margin_deficit,
    path_lengths,
    values,
)
from gossamer.bounds.conformal import conformal_coverage
from gossamer.bounds.ilk import (
    ilk_contraction,
    ilk_mistakes,
    ilk_mistakes_parameters,
    ilk_norm,
    ilk_regret,
    silk_measured_regret,
    silk_regret,
    silk_tracking,
)
from gossamer.bounds.mixture import best_sequences, fixed_share, fixed_share_mistakes, roster_regret
from gossamer.bounds.newton import arow_mistakes, newton_identity, newton_regret
from gossamer.bounds.norma import (
    alarm_deviation,
    alarm_fraction,
    norma_largest_risk,
    norma_margin_errors,
    norma_margin_errors_parameters,
    norma_mistakes,
    norma_mistakes_parameters,
    norma_norm,
    norma_regret,
    norma_risk,
    norma_truncated_regret,
    norma_truncation,
)
from gossamer.bounds.projection import (
    alma_corrections,
    alma_parameters,
    pa1_mistakes,
    pa2_loss,
    pa_loss,
    perceptron_mistakes,
    projection_local_loss,
    projection_local_mistakes,
    projection_local_steps,
    projection_loss,
    projection_mistakes,
    projection_steps,
    romma_mistakes,
    romma_norm,
)
from gossamer.bounds.theorem import ALL, Bound, Tuning

__all__ = [
    "ALL",
    "Bound",
    "Comparator",
    "Rivals",
    "Tuning",
    "alarm_deviation",
    "alarm_fraction",
    "alma_corrections",
    "alma_parameters",
    "arow_mistakes",
    "best_sequences",
    "conformal_coverage",
    "cumulative_risk",
    "fixed_share",
    "fixed_share_mistakes",
    "ilk_contraction",
    "ilk_mistakes",
    "ilk_mistakes_parameters",
    "ilk_norm",
    "ilk_regret",
    "largest_kappa",
    "log_det",
    "margin_deficit",
    "newton_identity",
    "newton_regret",
    "norma_largest_risk",
    "norma_margin_errors",
    "norma_margin_errors_parameters",
    "norma_mistakes",
    "norma_mistakes_parameters",
    "norma_norm",
    "norma_regret",
    "norma_risk",
    "norma_truncated_regret",
    "norma_truncation",
    "pa1_mistakes",
    "pa2_loss",
    "pa_loss",
    "path_lengths",
    "perceptron_mistakes",
    "projection_local_loss",
    "projection_local_mistakes",
    "projection_local_steps",
    "projection_loss",
    "projection_mistakes",
    "projection_steps",
    "romma_mistakes",
    "romma_norm",
    "roster_regret",
    "silk_measured_regret",
    "silk_regret",
    "silk_tracking",
    "values",
]

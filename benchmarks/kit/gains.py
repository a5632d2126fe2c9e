"""What every method gains over plain distance: how much, how surely, and for how many queries."""

import numpy as np

from rankfold.evaluation.measures import ROUNDING, bootstrap_interval, share_worse


def gain_rows(evaluations, **also):
    """Yield a row for every method and measure, in per cent, that starts with ``also``.

    Parameters
    ----------
    evaluations : dict
        By the name of a method: an Evaluation, and the name that the method has in it. All are
        of the same queries.
    """
    for method, (found, name) in evaluations.items():
        for metric in found.metrics:
            values, plain = found.values[name][metric], found.plain[metric]
            row = {**also, "method": method, "measure": metric, "mean %": percent(values)}
            yield row | compared(values, plain)


def compared(values, plain):
    """Return the cells that compare with plain distance, empty for plain distance itself."""
    gain = values - plain
    if not np.any(np.abs(gain) > ROUNDING):
        return dict.fromkeys(("gain", "95 % interval", "harm %", "helped %"), "")
    low, high = (100 * float(end[0]) for end in bootstrap_interval(gain[:, None]))
    return {
        "gain": f"{100 * gain.mean():+.1f}",
        "95 % interval": f"{low:+.1f} to {high:+.1f}",
        "harm %": f"{100 * share_worse(values, plain):.1f}",
        "helped %": percent(gain > ROUNDING),
    }


def percent(values):
    return f"{100 * np.mean(values):.1f}"

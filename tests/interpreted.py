"""The kernels of the region solver, run by Python: nothing is compiled, every index is checked."""

import sys
from importlib import import_module

import numba

import rankfold.solvers

NAMES = ("memory", "push", "certificate", "gradients", "levels")


def _interpreted():
    """Import the modules once more without numba, and leave those that are compiled in place."""
    package = rankfold.solvers
    paths = [f"{package.__name__}.{name}" for name in NAMES]
    compiled = {path: import_module(path) for path in paths}
    for path in paths:
        del sys.modules[path]
    before, numba.config.DISABLE_JIT = numba.config.DISABLE_JIT, 1
    try:
        return [import_module(path) for path in paths]
    finally:
        numba.config.DISABLE_JIT = before
        sys.modules.update(compiled)
        for name, module in zip(NAMES, compiled.values(), strict=True):
            setattr(package, name, module)


_, push, certificate, gradients, levels = _interpreted()

"""How much property tests try: all that they ask for, or a tenth of it.

``--hypothesis-profile=quick`` is the tenth, which ``make test`` takes, and always the same one: a
change is not slowed down or held up by an example that it has nothing to do with. Without it tests
try all, chosen at random.
"""

from hypothesis import settings

WHOLE, QUICK, LEAST = 100, 10, 3

settings.register_profile("thorough", deadline=None, max_examples=WHOLE)
settings.register_profile("quick", deadline=None, max_examples=QUICK, derandomize=True)
settings.load_profile("thorough")


FEW_STEPS = 8
"""Steps of each example of a quick test that makes one change after another."""


def examples(number, steps=None, **others):
    """Return the settings of a test that tries so many examples when all are tried."""
    share = number * settings.default.max_examples // WHOLE
    if steps is not None:
        quick = settings.default.max_examples < WHOLE
        others["stateful_step_count"] = min(steps, FEW_STEPS) if quick else steps
    return settings(max_examples=min(number, max(share, LEAST)), deadline=None, **others)

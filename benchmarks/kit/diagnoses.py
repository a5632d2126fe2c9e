"""A labelled corpus of short texts from another field: the diagnoses of ICD-10-CM."""

from collections import Counter

from rankfold.errors import MissingExtraError

FEWEST = 20


def load():
    """Return the descriptions of all categories, and the chapters that they are in.

    The classification is a public one of the United States; the package that holds it has the
    MIT licence.
    """
    try:
        import simple_icd_10_cm as icd
    except ImportError:
        raise MissingExtraError("simple-icd-10-cm", "bench") from None
    codes = [code for code in icd.get_all_codes() if icd.is_category(code)]
    chapters = {icd.get_description(code): icd.get_ancestors(code)[-1] for code in codes}
    sizes = Counter(chapters.values())
    return zip(*((text, at) for text, at in chapters.items() if sizes[at] >= FEWEST), strict=True)

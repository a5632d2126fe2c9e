import re

import pytest
import text_search
from PIL import Image
from sources.docstrings import FEWEST, load, purpose
from sources.questions import QUESTIONS


@pytest.fixture(scope="module")
def texts():
    return load()


@pytest.mark.slow
def test_questions_find_more_of_their_subject_by_shape(tmp_path):
    figures = text_search.main(tmp_path)
    assert figures["questions by RAN"] > figures["questions by cosine"]
    assert figures["texts by RAN"] > figures["texts by cosine"] + 0.05
    assert figures["better"] > 2 * figures["worse"]
    with Image.open(tmp_path / "text_search.png") as picture:
        assert picture.width == text_search.WIDTH
        assert len(picture.getcolors()) > 2


def test_texts_do_not_name_their_subpackage(texts):
    told = re.compile(r"numpy|scipy|sklearn|scikit-learn", re.IGNORECASE)
    assert [text for text in texts if told.search(text.words)] == []


def test_no_text_is_there_twice(texts):
    assert len({text.words.lower() for text in texts}) == len(texts)


def test_every_subject_has_enough_texts_and_every_question_a_subject(texts):
    subjects = [text.subject for text in texts]
    assert min(map(subjects.count, subjects)) >= FEWEST
    assert set(QUESTIONS.values()) <= set(subjects)


def test_purpose_is_the_first_paragraph_that_is_no_signature():
    docstring = "fft(a, n=None)\n\nLike `numpy.fft.fft`, of the *last*\naxis.\n\nMore."
    assert purpose(docstring) == "Like , of the last axis."
    assert purpose("") == ""

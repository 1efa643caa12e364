from breakeven.drafters.naming import settings_words, value_words, varying


def test_a_shortest_and_a_longest_n_gram_are_a_range():
    assert settings_words({"k": 5, "min_n": 2, "max_n": 4}) == "k=5 n=2–4"
    assert settings_words({"min_n": 3, "max_n": 3}) == "n=3"
    assert settings_words({"max_n": 4, "k": 1}) == "max_n=4 k=1"


def test_only_what_is_wanted_is_named():
    settings = {"k": 5, "min_n": 2, "max_n": 4, "depth": 24}
    assert settings_words(settings, {"k"}) == "k=5"
    assert settings_words(settings, {"max_n"}) == "n=2–4"
    assert settings_words(settings, set()) == ""


def test_values_are_as_typed():
    assert [value_words(value) for value in (True, None, 1.0, 0.25, "BFS", 3)] == [
        *("true", "none", "1", "0.25", "BFS", "3"),
    ]


def test_what_varies():
    assert varying([{"k": 1, "n": 2}, {"k": 3, "n": 2}, {"k": 3, "n": 2, "x": 1}]) == {"k", "x"}
    assert varying([{"k": 1}]) == varying([]) == set()

from breakeven.client.reasons import gathered, kind


def told(*given: tuple[str, tuple[str, ...]]) -> list[str]:
    return [one.told(" and ".join(one.places)) for one in gathered(given)]


def test_a_reason_of_one_place_is_itself():
    assert told(("a", ("lagged 1.5 ms",))) == ["a: lagged 1.5 ms"]


def test_the_same_reason_names_all_its_places():
    assert told(("a", ("lagged 1 ms",)), ("b", ("lagged 1 ms",))) == ["a and b: lagged 1 ms"]


def test_other_figures_are_no_other_reason():
    found = told(("a", ("lagged 1.5 ms",)), ("b", ("few",)), ("c", ("lagged 20 ms", "few")))
    assert found == ["a and c, by the figures of the first: lagged 1.5 ms", "b and c: few"]


def test_a_place_that_says_it_twice_is_named_once():
    assert told(("a", ("lagged 1 ms", "lagged 2 ms"))) == ["a: lagged 1 ms"]


def test_other_words_are_another_kind():
    assert kind("lagged 1,000.5 ms") == kind("lagged 2 ms") != kind("lagged 2 s")

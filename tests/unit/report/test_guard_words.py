from breakeven.report import guard_words as words
from breakeven.report.guard_plots import BEST_FIXED, FREE, GUARD, WORST, gain_by_epsilon
from tests.unit.report.guards import fixed, simulation


def test_the_headline_has_both_speeds_and_both_worst_requests():
    assert words.headline(simulation()) == (
        "Guard (ε = 2 %): 1.240×, worst request 0.985×. Best fixed in hindsight: 1.250×, worst request "
        "0.900× (vllm-ngram k=3 n=2–4)."
    )


def test_what_a_wrong_setting_costs_and_what_is_left_to_win():
    slowest, oracle = words.sentences(simulation())
    assert slowest == (
        "Of 3 fixed settings the slowest comes to 1.100× (vllm-ngram k=8 n=2–4), and the worst request of "
        "any to 0.760× (vllm-ngram k=8 n=2–4)."
    )
    assert oracle == "Perfect windows would be 12.9 % faster than the guard."


def test_an_engine_without_a_seam_is_told_its_best_static_setting_and_what_that_loses():
    said = words.sentences(simulation(engine="llama.cpp", has_seam=False, fixed=(fixed(3, 1.1, 0.8),)))[-1]
    assert said.startswith(
        "llama.cpp has no seam for a guard. Its best static setting is vllm-ngram k=3 n=2–4"
    )
    assert "--flags-of 3: 11.3 % slower than a guard would be, 21.4 % slower than perfect windows" in said
    assert said.endswith("its worst request 0.800× instead of 0.985×.")


def test_a_static_setting_that_is_faster_than_a_guard_is_said_to_be():
    said = words.sentences(simulation(has_seam=False, fixed=(fixed(3, 1.3, 0.8),)))[-1]
    assert "4.8 % faster than a guard would be" in said


def test_what_a_guard_cannot_undo_is_said_where_there_is_any():
    assert words.idle_sentence(simulation()) == ""
    assert words.idle_sentence(simulation(idle=0.006)).startswith(
        "Having a drafter at all adds 0.6 % to every"
    )


def test_epsilons_in_words():
    assert [words.epsilon_words(e) for e in (0.02, 0.005, float("inf"))] == ["2 %", "0.5 %", "none"]


def test_the_plot_has_the_guard_its_worst_request_and_what_no_epsilon_changes():
    plot = gain_by_epsilon(simulation())
    assert plot is not None
    assert [line.name for line in plot.lines][:3] == [GUARD, WORST, FREE]
    assert BEST_FIXED in [line.name for line in plot.lines]
    assert [tick.label for tick in plot.across] == ["1", "5"]
    assert "guard, mean over requests, ε = 1 %: 1.200×" in plot.text
    assert [line.dashed for line in plot.lines] == [False, False, True, True, True, True]
    assert gain_by_epsilon(simulation(by_epsilon=())) is None

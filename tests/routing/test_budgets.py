"""Budgets: sliding windows, promises, and nothing that leaks."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.budgets import DAY, HOUR, BudgetWindows

NOW = 1_800_000_000.0


def test_no_budget_is_no_limit() -> None:
    assert BudgetWindows({"e": (None, None)}).left("e", NOW) is None
    assert BudgetWindows({}).left("e", NOW) is None


def test_the_tighter_window_decides_and_spending_slides_out_of_it() -> None:
    budgets = BudgetWindows({"e": (100, 1000)})
    budgets.charge("e", 90, NOW)
    assert budgets.left("e", NOW) == 10
    assert budgets.left("e", NOW + HOUR + 60) == 100
    budgets.charge("e", 880, NOW + 1)
    assert budgets.left("e", NOW + HOUR + 60) == 30
    assert budgets.left("e", NOW + DAY + 120) == 100


def test_a_promise_counts_until_it_is_settled_and_unknown_cost_is_charged_as_promised() -> None:
    budgets = BudgetWindows({"e": (100, None)})
    budgets.promise("e", 60)
    assert budgets.left("e", NOW) == 40
    budgets.settle("e", 60, 20, NOW)
    assert budgets.left("e", NOW) == 80
    budgets.promise("e", 30)
    budgets.settle("e", 30, None, NOW)
    assert budgets.left("e", NOW) == 50


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.one_of(st.none(), st.integers(0, 80)), st.integers(0, 4000)),
        max_size=40,
    )
)
def test_spent_and_left_always_add_up(requests: list[tuple[int, int | None, int]]) -> None:
    budgets, now = BudgetWindows({"e": (10_000, None)}), NOW
    for promised, spent, passed in requests:
        now += passed
        budgets.promise("e", promised)
        budgets.settle("e", promised, spent, now)
        assert budgets.left("e", now) == 10_000 - budgets.spent("e", HOUR, now)
    assert budgets.spent("e", HOUR, now + DAY) == 0

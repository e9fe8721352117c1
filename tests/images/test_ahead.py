"""Threads that read ahead keep the order, take no more than they may, and leave nothing behind."""

import threading
import time

import pytest

from equicaps.images.ahead import Room, ahead


def test_results_come_in_order_although_later_ones_are_ready_first():
    def slow_first(number):
        time.sleep(0.05 if number == 0 else 0)
        finished.append(number)
        return -number

    finished = []
    assert list(ahead(slow_first, range(20), workers=4, limit=8)) == [-number for number in range(20)]
    assert finished[0] != 0  # guard: they did overtake


def test_no_more_items_are_taken_than_the_limit_and_those_asked_for():
    taken = []
    results = ahead(lambda number: number, map(taken.append, range(1000)), workers=2, limit=10)
    assert taken == []
    for asked in range(1, 5):
        next(results)
        assert len(taken) == 10 + asked
    results.close()


def test_an_error_is_raised_where_its_item_would_have_come():
    results = ahead(lambda number: 1 / number, (2, 1, 0, 4), workers=2, limit=4)
    assert (next(results), next(results)) == (0.5, 1.0)
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_whoever_stops_early_leaves_no_threads():
    before = threading.active_count()
    results = ahead(lambda number: number, range(1000), workers=3, limit=5)
    next(results)
    assert threading.active_count() > before  # guard
    results.close()
    assert threading.active_count() == before


def test_a_room_is_never_overfull_and_something_larger_is_alone():
    room, inside, most = Room(10), [], []
    lock = threading.Lock()

    def visit(amount):
        with room.taken(amount):
            with lock:
                inside.append(amount)
                most.append(list(inside))
            time.sleep(0.002)
            with lock:
                inside.remove(amount)

    assert len(list(ahead(visit, [4, 3, 3, 25, 1, 9, 5, 5, 25, 2] * 3, workers=6, limit=30))) == 30
    assert max(len(together) for together in most) > 1  # guard: several were inside at once
    assert all(sum(together) <= 10 or together == [25] for together in most)

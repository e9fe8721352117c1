"""File after file in batches: the order stays, failures stay where they belong, and nothing is read too early."""

import itertools

from equicaps.errors import UnansweredError
from equicaps.inference.batches import answers_or_failures


def doubled(batch):
    if 5 in batch:
        raise UnansweredError("none for 5")
    return [2 * number for number in batch]


def test_every_file_has_its_answer_or_its_reason_in_order():
    """5 has no answer, which leaves the others of its batch theirs."""
    unread = OSError("gone")
    found = list(answers_or_failures([0, unread, 2, 3, 4, 5, unread, unread], doubled, 3))
    assert [str(answer) for answer in found] == ["0", "gone", "4", "6", "8", "none for 5", "gone", "gone"]
    assert list(answers_or_failures([], doubled, 3)) == []


def test_batches_are_full_and_only_one_is_read_at_a_time():
    taken, batches = [], []

    def contents():
        for number in itertools.count():
            taken.append(number)
            yield number

    def answer(batch):
        batches.append(list(batch))
        return batch

    answers = answers_or_failures(contents(), answer, 4)
    assert list(itertools.islice(answers, 4)) == taken == [0, 1, 2, 3]
    assert next(answers) == 4
    assert taken == list(range(8))
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7]]

import pytest

from equicaps.data.damaged import NAMED, of_each, or_error, refuse
from equicaps.errors import DamagedFileError, DamagedFilesError, MissingPackageError, UsageError


def errors(*names):
    return [DamagedFileError(f"{name} is truncated.") for name in names]


def test_what_is_whole_is_returned_and_all_that_is_damaged_is_named():
    def read(number):
        if number % 3 == 2:
            raise DamagedFileError(f"file {number} is truncated.")
        return 10 * number

    assert of_each(read, [0, 1, 3]) == [0, 10, 30]
    with pytest.raises(DamagedFilesError) as raised:
        of_each(read, range(7), "shapes")
    assert str(raised.value).split("\n") == [
        "2 of 7 shapes cannot be used; repair or remove them:",
        "  file 2 is truncated.",
        "  file 5 is truncated.",
    ]


def test_no_name_makes_a_line_of_its_own_or_sends_commands_to_a_terminal():
    with pytest.raises(DamagedFilesError) as raised:
        refuse(errors("a\n  b", "\x1b[31mc", "d\udcff"), of=3)
    assert str(raised.value).split("\n")[1:] == [
        r"  a\n  b is truncated.", r"  \x1b[31mc is truncated.", r"  d\udcff is truncated.",
    ]  # fmt: skip


def test_a_single_error_is_raised_as_it_is_and_none_without_any():
    [error] = errors("a\nb")
    with pytest.raises(DamagedFileError) as raised:
        refuse([error], of=5)
    assert raised.value is error
    refuse([], of=5)


@pytest.mark.parametrize(("count", "more"), [(NAMED, []), (NAMED + 2, ["  and 2 more"])])
def test_of_many_the_first_are_named(count, more):
    with pytest.raises(DamagedFilesError) as raised:
        refuse(errors(*range(count)), of=99)
    assert str(raised.value).split("\n")[NAMED + 1 :] == more


def test_a_missing_package_is_no_damage():
    def fail(error):
        raise error

    with pytest.raises(MissingPackageError):
        or_error(fail, MissingPackageError("Shapes need trimesh."))
    assert str(or_error(fail, UsageError("refused"))) == "refused"

"""Programs that attack the library: damaged files, hostile words and requests, kills at any moment.

Each attack is a function of a seeded random generator that yields, for every attempt, nothing if the library survived
it (the right answer, or one clear error in time and within its memory), or else what happened. ``python -m attack``
(``make attack``) makes many attempts and writes the table of ``docs/reliability.md``; the tests make some.
"""

"""The texts that change: few different ones, so that many are equal."""

from random import Random

from tests.world import WHAT, WHO


def sentence(choose: Random) -> str:
    """Return one of the 200 stories."""
    return f"{choose.choice(WHO).capitalize()} {choose.choice(WHAT)}."


def other(choose: Random, values: list[object], value: object) -> object:
    """Return another one of the values."""
    return choose.choice([each for each in values if each != value])

"""Values that people write into settings and command lines: whole numbers, and addresses of bundles in S3."""

from collections.abc import Callable

S3 = "s3://"


def whole_number(text: str, least: int, most: int) -> int:
    """Return the number that a text of ASCII digits means. Raises ValueError unless it is from `least` to `most`."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 20 and least <= int(text) <= most):
        raise ValueError(f"{text!r}, expected a whole number from {least} to {most}")
    return int(text)


def number_option(least: int, most: int, advice: str = "") -> Callable[[str], int]:
    """Return `whole_number` as the type of an option of argparse. Its error ends with `advice`."""

    def parse(text: str) -> int:
        try:
            return whole_number(text, least, most)
        except ValueError as error:
            from argparse import ArgumentTypeError  # only command lines need it

            raise ArgumentTypeError(f"{error}{advice}") from error

    return parse


def split_s3_url(url: str) -> tuple[str, str]:
    """Return bucket and prefix of s3://BUCKET/PREFIX; the prefix has no slash at its ends.

    Raises ValueError if there is no bucket, or if there is a query or a fragment.
    """
    bucket, _, prefix = url.removeprefix(S3).partition("/")
    if not url.startswith(S3) or not bucket or any(character in url for character in "?#"):
        raise ValueError(f"{url!r}, expected {S3}BUCKET/PREFIX")
    return bucket, prefix.strip("/")

"""A corpus at an address in S3, copied to this machine while it is read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from semsearch.aws.s3.published import S3
from semsearch.indexing.corpus.corpus import CorpusError
from semsearch.indexing.errors import first_line, require_packages


def corpus_place(words: str) -> Path:
    """Return the place of a corpus as a path; s3://bucket/key stays recognizable as `s3:/bucket/key`.

    Raises CorpusError for s3:// without a bucket and a key.
    """
    if words.startswith(S3) and len(Path(words).parts) < 3:
        raise CorpusError(f"found {words!r}, expected s3://BUCKET/KEY of a file or a folder; write both")
    return Path(words)


@contextmanager
def fetching_corpus(path: Path) -> Iterator[Path]:
    """Yield a path on this machine that holds the corpus: the path itself, or for s3:// a copy that is deleted later.

    Credentials, region and endpoint are those of the environment, as for Arrow: AWS_PROFILE, AWS_REGION,
    AWS_ENDPOINT_URL. The copy is in the folder for temporary files (TMPDIR).
    Raises CorpusError if it cannot be fetched.
    """
    if path.parts[:1] != ("s3:",):
        yield path
        return
    url = S3 + "/".join(path.parts[1:])
    require_packages(url, "cluster", "pyarrow")
    from pyarrow.fs import FileType, S3FileSystem, copy_files

    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        try:
            endpoint = urlsplit(os.environ.get("AWS_ENDPOINT_URL", ""))  # Arrow's options are its two parts
            source = S3FileSystem(endpoint_override=endpoint.netloc or None, scheme=endpoint.scheme or None)
            key = "/".join(path.parts[1:])
            if source.get_file_info(key).type == FileType.Directory:
                copy.mkdir()
            copy_files(key, str(copy), source_filesystem=source)
        except OSError as error:
            raise CorpusError(
                f"{url}: found no corpus that can be read ({first_line(error)}), expected a file or a folder; check "
                "the address and the credentials"
            ) from error
        try:
            yield copy
        except CorpusError as error:  # the message names the address, since the copy is deleted
            raise CorpusError(str(error).replace(str(copy), url)) from error

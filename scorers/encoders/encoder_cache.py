"""The results that an encoder computes once, kept in the cache of the user: vectors of relations, and graphs."""

import hashlib
import logging
from collections.abc import Callable

from kbtools.errors import KBUnusable
from kbtools.record_files import read_record, write_record
from kbtools.user_cache import cache_folder

logger = logging.getLogger(__name__)

FORMAT_NAME, FORMAT_VERSION = "kbtools-encoder-cache", 1


def keep(folder: str, key: str, make: Callable[[], bytes]) -> bytes:
    """Return what was made for a key before, or make it."""
    path = cache_folder() / folder / f"{hashlib.sha256(key.encode()).hexdigest()}.msgpack"
    try:
        content: bytes = read_record(path, name=FORMAT_NAME, version=FORMAT_VERSION, cure="it is made anew")["content"]
        return content
    except (KBUnusable, KeyError):  # missing, damaged, or of another version
        made = make()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_record(path, {"content": made}, name=FORMAT_NAME, version=FORMAT_VERSION)
    except OSError as error:  # a disk that is full or read-only costs seconds the next time, and nothing else
        logger.info("%s: not kept (%s)", path, error.strerror)
    return made

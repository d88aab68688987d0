"""The results that an encoder computes once, kept in the cache of the user: vectors of relations, and graphs."""

import hashlib
import logging
from collections.abc import Callable

from kbtools.errors import DiskFull, KBUnusable
from kbtools.record_files import read_record, write_record
from kbtools.user_cache import own_cache

logger = logging.getLogger(__name__)

FORMAT_NAME, FORMAT_VERSION = "kbtools-encoder-cache", 1


def keep(folder: str, key: str, make: Callable[[], bytes]) -> bytes:
    """Return what was made for a key before, or make it."""
    cache = own_cache(folder)
    if cache is None:
        return make()
    made_from = hashlib.sha256(key.encode()).hexdigest()
    path = cache / f"{made_from}.msgpack"
    try:
        record = read_record(path, name=FORMAT_NAME, version=FORMAT_VERSION, cure="it is made anew")
        if record["made_from"] == made_from and isinstance(record["content"], bytes):
            return record["content"]
    except (KBUnusable, KeyError):  # missing, damaged, or of another version
        pass
    made = make()
    try:
        record = {"made_from": made_from, "content": made}
        write_record(path, record, name=FORMAT_NAME, version=FORMAT_VERSION)
    except (OSError, DiskFull) as error:  # a disk that is full or read-only costs seconds the next time, and no more
        logger.info("%s: not kept (%s)", path, error)
    return made

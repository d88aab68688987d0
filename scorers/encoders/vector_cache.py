"""Vectors of texts, kept on disk by the encoder that made them: those of the relations of FBSQ take five seconds."""

import hashlib
import logging
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import KBUnusable
from kbtools.record_files import read_record, write_record
from kbtools.user_cache import cache_folder

logger = logging.getLogger(__name__)

FORMAT_NAME, FORMAT_VERSION = "kbtools-vectors", 1


def encode_once(
    encode: Callable[[Sequence[str]], NDArray[np.float32]], texts: Sequence[str], *, digest: str, dim: int
) -> NDArray[np.float32]:
    """Encode texts, or read their vectors where the encoder of that digest has encoded them before: (texts, dim)."""
    key = hashlib.sha256("\n".join([digest, *texts]).encode()).hexdigest()
    path = cache_folder() / "vectors" / f"{key}.msgpack"
    try:
        packed = read_record(path, name=FORMAT_NAME, version=FORMAT_VERSION, cure="it is made anew")["vectors"]
        return np.frombuffer(packed, dtype="<f4").reshape(len(texts), dim)
    except (KBUnusable, KeyError, ValueError):  # not there, damaged, or of another version
        made = encode(texts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        record = {"vectors": made.astype("<f4").tobytes()}
        write_record(path, record, name=FORMAT_NAME, version=FORMAT_VERSION)
    except OSError as error:  # a disk that is full or read-only costs seconds the next time, and nothing else
        logger.info("%s: vectors of relations are not kept (%s)", path, error.strerror)
    return made

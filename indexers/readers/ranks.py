"""The ranks of names, as readers give them, apart from batches: who looks names up needs no Arrow."""

ALIAS = 255
"""The rank of an alias. A name's is the place of its language in `--lang`, from 0: the lowest is the one shown."""

LAST_RANK = ALIAS - 1
"""The rank of a name in a later language of its entity, where no other is known."""

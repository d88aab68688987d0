"""The files of the sample knowledge base, which is indexed when it is first asked for by the name `sample`."""

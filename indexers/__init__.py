"""Knowledge bases in storage: the embedded index, and the reference in memory."""

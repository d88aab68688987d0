"""Where a knowledge base lives: the embedded index, and the reference in memory."""

"""The researchers' wing: the paper's theory, environments and experiments."""

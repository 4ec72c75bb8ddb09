"""The compiled engine: what the algorithms' loops are made of."""

"""The compiled engine: the building blocks of the algorithms' loops."""

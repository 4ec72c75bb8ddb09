"""HTTP for the engine. Read `routes` first (the table), then `middleware` and `app`."""

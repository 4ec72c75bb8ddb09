"""What a cluster costs and what it brings, on this machine."""

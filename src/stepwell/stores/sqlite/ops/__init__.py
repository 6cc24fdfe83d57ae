"""The ops of the port as statements: each module has those that change the same things."""

"""What a stage is made of, as a hash that only a change of meaning changes."""

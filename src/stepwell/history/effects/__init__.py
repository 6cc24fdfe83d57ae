"""Effects: what bodies ask of the outside world, recorded, and answered from the record in a replay."""

"""What bodies ask of the outside: recorded while they ask, answered from the record in a replay."""

"""`make fuzz`: what strangers may write, each input with a limit of time and of memory."""

"""Who may do what: tokens, sessions of browsers, and the guard that every request passes."""

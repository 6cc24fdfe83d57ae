"""What people see of a run: a tree, a timeline, colours. Most of it loads Rich: import it when there is something to show."""

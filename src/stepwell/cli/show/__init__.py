"""What people see: progress, tables, trees, timelines."""

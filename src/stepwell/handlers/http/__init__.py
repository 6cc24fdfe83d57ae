"""HTTP for documents: requests that go only where they may, connect to the address that was checked, and have an end."""

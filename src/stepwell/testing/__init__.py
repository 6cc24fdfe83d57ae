"""For tests: ops in few words (`ops`), an auditor of what a store holds (`audit`), the suite every store passes."""

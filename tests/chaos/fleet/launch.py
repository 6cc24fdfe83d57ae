"""`python -m tests.chaos.fleet.launch worker ...`: the command line, with the bad broker known to it."""

from stepwell.cli import main
from tests.chaos.fleet.transport import register

if __name__ == "__main__":
    register()
    main()

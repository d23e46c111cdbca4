"""What the demo and the tests need of a machine beside Python, how it comes there, and bare machines to try that on.

`programs` lists what is needed, `bring` installs it where that is allowed, and `untried` says at the end of a test run
what was left out without it. `python -m tests.machines` sets up machines that have nothing yet; `bare` makes them.
Nothing here is installed or imported before Octavo is set up, so all of it does with Python's own library.
"""

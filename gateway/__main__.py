"""`python -m gateway` is `spillgate`."""

from gateway.cli.main import main

if __name__ == "__main__":
    main()

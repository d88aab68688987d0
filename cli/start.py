"""The entry point of the command: Ctrl-C during imports ends it silently, as it does later."""

import signal


def main() -> None:
    """Run the command; Python's handler of Ctrl-C is restored once there is work to unwind."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # Not if it is ignored, as under nohup or a shell's &.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from kbtools.cli.main import main as run

    signal.signal(signal.SIGINT, before)
    run()

"""The entry point of the command: Ctrl-C while modules are still imported ends it in silence, as it does later."""

import signal


def main() -> None:
    """Run the command, with Python's handler of Ctrl-C back in its place once there is something to unwind."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not where nohup or a shell's & has it ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from kbtools.cli.main import main as run

    signal.signal(signal.SIGINT, before)
    run()

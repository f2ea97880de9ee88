"""The library's answers by a process of its own: it imports the library, which takes seconds, while photos are made
here and the pipeline runs."""

import multiprocessing
import signal
import sys

from .description import ConversionError


def in_process(made, given_of):
    """The same without a process."""
    reference = made.reference()
    return lambda path: reference(given_of(path))


class Ahead:
    """Answers files in the order in which `files` named them. `given_of` makes of a path what the library is given."""

    def __init__(self, made, given_of):
        self.ours, theirs = multiprocessing.Pipe()
        # A fork has the definition already, and no thread of the engine runs before the first pipeline does.
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=_answer, args=(theirs, self.ours, made, given_of), daemon=True)
        self.process.start()
        theirs.close()

    @staticmethod
    def is_worth_it():
        """Whether there is something to import yet, and processes can be forked."""
        return "torch" not in sys.modules and "fork" in multiprocessing.get_all_start_methods()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.join()
        self.ours.close()

    def files(self, paths):
        """Waits until the library is there, and says which files come."""
        self._received()
        self.ours.send(list(paths))

    def __call__(self, _):
        return self._received()

    def _received(self):
        try:
            found = self.ours.recv()
        except EOFError:
            raise RuntimeError("the process that runs the library ended") from None
        if isinstance(found, BaseException):
            raise found
        return found


def _answer(connection, parents, made, given_of):
    parents.close()
    # Ctrl-C ends the process that has this one, and that ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        reference = made.reference()
        connection.send(None)
        for path in connection.recv():
            connection.send(reference(given_of(path)))
    except (EOFError, BrokenPipeError):
        return
    except Exception as error:
        connection.send(_plain(error))


def _plain(error):
    """An error that can be sent, of the same kind where it is one that is told apart."""
    known = (ConversionError, ImportError, ValueError, TypeError, OSError)
    kind = next((kind for kind in known if isinstance(error, kind)), None)
    return kind(str(error)) if kind else RuntimeError(f"{type(error).__name__}: {error}")

"""Copies of objects that own something of the library: two owners would release it twice."""


class _NotPickled:
    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} belongs to its process and cannot be pickled; make it again where it is used")


class Immutable(_NotPickled):
    """Nothing changes it, so that a copy of it is the object itself."""

    def __copy__(self):
        return self

    def __deepcopy__(self, _memo):
        return self


class NotCopied(_NotPickled):
    """A copy would release what the object owns while the object still uses it."""

    def __copy__(self):
        raise TypeError(f"a {type(self).__name__} cannot be copied: it owns memory of the library; make a new one")

    def __deepcopy__(self, _memo):
        return self.__copy__()

"""The mixin of objects that `gossamer.store` saves: parameters, and learned attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from gossamer import _checks

if TYPE_CHECKING:
    from os import PathLike
    from typing import Self


class Stored:
    """Can be saved and loaded. The file format and what loading guarantees: docs/store.md.

    A subclass has a constructor whose parameters ``get_params`` returns; all other attributes are learned.
    """

    #: Parameters that files of older versions lack, with the values that they had then.
    _of_old: ClassVar[dict[str, Any]] = {}

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file that `gossamer.load` reads. A file of that name is replaced in one step, or stays as it is."""
        from gossamer import store

        store.save(self, path)

    def to_bytes(self) -> bytes:
        """The bytes that `save` writes."""
        from gossamer import store

        return store.dumps(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """An object of this class from the bytes of `to_bytes`."""
        from gossamer import store

        found = store.loads(data)
        if not isinstance(found, cls):
            raise _checks.wrong(cls.__name__, "data", f"those of a {cls.__name__}", type(found).__name__)
        return found

    def _parameters(self) -> dict[str, Any]:
        """The constructor's parameters, which make this object as it was before it learned."""
        parameters: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        return parameters

    def _learned(self) -> dict[str, Any]:
        """The learned attributes, in a fixed order, so that equal objects give equal bytes."""
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        return {name: value for name, value in sorted(vars(self).items()) if name not in given}

    def _relearn(self, learned: dict[str, Any]) -> None:
        """Set the learned attributes of a new object; attributes that the class defines cannot be overwritten."""
        for name, value in learned.items():
            if hasattr(type(self), name) or name in vars(self) or not name.isidentifier():
                raise _checks.wrong(self, name, "no learned attribute", value)
            setattr(self, name, value)

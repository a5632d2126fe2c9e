"""How compiled code of the region solver sees arrays: as pointers, kept together by a handle."""

from __future__ import annotations

from hashlib import blake2s
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, typeof, types
from numba.core import cgutils, config
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    models,
    register_model,
    unbox,
)

from rankfold.compilation import compiled, inner
from rankfold.solvers.arrays import Memory

entry: Any = compiled(error_model="numpy")
"""Compiles what Python calls, and all that it calls."""

kernel: Any = inner(error_model="numpy")
"""Compiles what only compiled code calls."""

summing: Any = inner(error_model="numpy", fastmath={"reassoc", "contract"})
"""Compiles a kernel whose sums may be taken in any order."""

ZERO = np.int64(0)
"""Where a count begins that is passed on: a 0 that is written there has a type of its own."""

cg: Any = cgutils
type_of: Any = typeof
pointer_to: Any = types.CPointer
native: Any = NativeValue
lowers: Any = lower_getattr_generic
unboxes: Any = unbox
WORD = ir.IntType(64)


def _prefetch(typing_context: Any, pointer: Any, index: Any) -> Any:
    """Prefetch the cache line that holds ``pointer[index]``; nothing is read or checked.

    Rows of a graph lie far apart in memory, and a walk over them mostly waits for it.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        call = cg.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        address = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), byte)
        for_reading, keep_near, of_data = (ir.Constant(word, value) for value in (0, 3, 1))
        builder.call(call, [address, for_reading, keep_near, of_data])
        return context.get_dummy_value()

    return types.void(pointer, index), generate


class Handle(types.Type):
    """What `handle` returns: the address of values with these names and types, 8 bytes for each.

    It has a short name, which is part of that of every kernel.
    """

    def __init__(self, title: str, names: tuple[str, ...], kinds: tuple[Any, ...]) -> None:
        self.names, self.kinds = names, kinds
        digest = blake2s(repr((names, kinds)).encode(), digest_size=4).hexdigest()
        super().__init__(name=f"{title}_{digest}")


register_model(Handle)(models.OpaqueModel)


def handle_of(given: Any) -> Handle:
    """Return the type of a handle for what a named tuple holds."""
    kinds = tuple(
        pointer_to(from_dtype(value.dtype)) if isinstance(value, np.ndarray) else type_of(value)
        for value in given
    )
    return Handle(type(given).__name__, given._fields, kinds)


def typed(*memories: Memory) -> None:
    """Tell the types of what kernels are called with."""
    for memory in memories:
        if memory._numba_type_ is None:
            memory._numba_type_ = handle_of(memory.given)


def _unboxed(kind: Handle, given: Any, c: Any) -> Any:
    """Take the address of a `Memory`."""
    address = c.pyapi.object_getattr_string(given, "address")
    value = c.pyapi.long_as_voidptr(address)
    c.pyapi.decref(address)
    return native(value)


unboxes(Handle)(_unboxed)


def _address(context: Any, builder: Any, kind: Handle, base: Any, place: int) -> Any:
    """Return where a value is kept."""
    address = builder.gep(builder.bitcast(base, WORD.as_pointer()), [WORD(place)])
    return builder.bitcast(address, context.get_data_type(kind.kinds[place]).as_pointer())


def _handle(typing_context: Any, given: Any) -> Any:
    """Keep a named tuple in memory as long as the caller runs; arrays become pointers.

    An array is seven values, one of which counts its owners, and tuples are passed value by
    value. For the dozens of arrays that kernels share, this is most of what there is to compile.
    """
    kinds = tuple(
        pointer_to(kind.dtype) if isinstance(kind, types.Array) else kind for kind in given.types
    )
    result = Handle(given.instance_class.__name__, given.fields, kinds)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        room = cg.alloca_once(builder, ir.ArrayType(WORD, len(kinds)))
        base = builder.bitcast(room, cg.voidptr_t)
        values = cg.unpack_tuple(builder, arguments[0])
        for place, (value, kind) in enumerate(zip(values, given.types, strict=True)):
            if isinstance(kind, types.Array):
                value = context.make_array(kind)(context, builder, value).data
            model = context.data_model_manager[kinds[place]]
            address = _address(context, builder, result, base, place)
            builder.store(model.as_data(builder, value), address)
        return base

    return result(given), generate


def _attribute(context: Any, builder: Any, kind: Handle, base: Any, name: str) -> Any:
    place = kind.names.index(name)
    address = _address(context, builder, kind, base, place)
    return context.data_model_manager[kind.kinds[place]].from_data(builder, builder.load(address))


@infer_getattr
class _HandleAttributes(AttributeTemplate):
    key = Handle

    def generic_resolve(self, kind: Handle, name: str) -> Any:  # type: ignore[override]
        return kind.kinds[kind.names.index(name)]


lowers(Handle)(_attribute)


def _after(typing_context: Any, pointer: Any, n: Any) -> Any:
    """Return a pointer to what lies ``n`` entries further on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, n), generate


def _small(typing_context: Any) -> Any:
    """Have the kernel that calls this compiled for size.

    Loops that read here and there become no faster by being unrolled, only several times as long.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.function.attributes.add("optsize")
        return context.get_dummy_value()

    return types.void(), generate


prefetch: Any = intrinsic(_prefetch)
handle: Any = intrinsic(_handle)
after: Any = intrinsic(_after)
small: Any = intrinsic(_small)

if vars(config)[
    "DISABLE_JIT"
]:  # Python runs the kernels on arrays then, and NumPy checks every index

    def handle(given: Any) -> Any:
        """Return what was given."""
        return given

    def after(array: Any, n: Any) -> Any:
        """Return what lies ``n`` entries further on."""
        return array[n:]

    def prefetch(*_: Any) -> None:
        """Do nothing."""

    def small() -> None:
        """Do nothing."""

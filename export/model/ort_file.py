"""Put a model file of ONNX Runtime into a fixed order, so that the same model always has the same bytes.

The file is a FlatBuffer whose root names a version, the model and a table of the operators' types. ONNX Runtime 1.31
writes that table from a hash map, in an order that differs from run to run. Here the table is read and written again,
sorted by name; the bytes of the model stay as they are.
Source: onnxruntime/core/flatbuffers/schema/ort.fbs, and https://flatbuffers.dev/internals
"""

from flatbuffers import Builder, encode, packer
from flatbuffers.number_types import Int8Flags, Uint32Flags
from flatbuffers.table import Table

VERSION, MODEL, TYPES = 0, 1, 3  # numbers of the root's fields
IDENTIFIER = b"ORTM"
ALIGNMENT = 8  # bytes


def sort_operators(content: bytes) -> bytes:
    """Return the content of an .ort file with its table of operators sorted by name."""
    root = Table(content, encode.Get(packer.uoffset, content, 0))
    model = Table(content, _target(root, MODEL))
    # where the bytes of the model and of its parts begin
    begin = min(model.Pos, model.Pos - encode.Get(packer.soffset, content, model.Pos))
    builder = Builder(0)  # it writes from the end to the beginning: the model's bytes are at the end already
    builder.Bytes, builder.head, builder.minalign = bytearray(content[begin:]), 0, ALIGNMENT
    types = _write(builder, [_copy(builder, each, True) for each in _by_name(Table(content, _target(root, TYPES)), 0)])
    builder.StartObject(1)
    builder.PrependUOffsetTRelativeSlot(0, types, 0)
    types = builder.EndObject()
    builder.StartObject(TYPES + 1)
    builder.PrependUOffsetTRelativeSlot(VERSION, len(content) - _target(root, VERSION), 0)
    builder.PrependUOffsetTRelativeSlot(MODEL, len(content) - model.Pos, 0)
    builder.PrependUOffsetTRelativeSlot(TYPES, types, 0)
    builder.Finish(builder.EndObject(), file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def _target(table: Table, field: int) -> int:
    """Return the position of the object that a field refers to."""
    return int(table.Indirect(table.Pos + table.Offset(4 + 2 * field)))


def _name(table: Table) -> str:
    return bytes(table.String(table.Pos + table.Offset(4))).decode()


def _tables(table: Table, field: int) -> list[Table]:
    """Return the tables in a field's vector."""
    offset = table.Offset(4 + 2 * field)
    begin = table.Vector(offset) if offset else 0
    count = table.VectorLen(offset) if offset else 0
    return [Table(table.Bytes, table.Indirect(begin + 4 * number)) for number in range(count)]


def _by_name(table: Table, field: int) -> list[Table]:
    return sorted(_tables(table, field), key=_name)


def _copy(builder: Builder, named: Table, is_operator: bool) -> int:
    """Write an operator with its types, or a type with the places in the operator; return its place from the end."""
    if is_operator:
        parts = [_copy(builder, each, False) for each in _by_name(named, 1)]
    else:
        parts = []
        places = [(each.GetSlot(4, 0, Int8Flags), each.GetSlot(6, 0, Uint32Flags)) for each in _tables(named, 1)]
        for kind, number in sorted(places):  # the kind is input or output
            builder.StartObject(2)
            builder.PrependInt8Slot(0, kind, 0)
            builder.PrependUint32Slot(1, number, 0)
            parts.append(builder.EndObject())
    vector, name = _write(builder, parts), builder.CreateString(_name(named))
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependUOffsetTRelativeSlot(1, vector, 0)
    return int(builder.EndObject())


def _write(builder: Builder, parts: list[int]) -> int:
    """Write a vector of tables; return its place from the end."""
    builder.StartVector(4, len(parts), 4)
    for part in reversed(parts):
        builder.PrependUOffsetTRelative(part)
    return int(builder.EndVector())

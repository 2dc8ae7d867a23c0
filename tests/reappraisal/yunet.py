"""An ONNX file with the outputs of YuNet that always sees one face: no weights are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

STRIDES = (8, 16, 32)


def write_detector(path: Path, side: int) -> Path:
    """A detector for pictures of ``side`` x ``side``: its face is the box 8, 16, 40, 48."""
    onnx = pytest.importorskip("onnx")
    np = pytest.importorskip("numpy")
    helper, numbers = onnx.helper, onnx.numpy_helper
    nodes = [
        helper.make_node("ReduceMean", ["input"], ["mean"], keepdims=0),
        helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
    ]
    constants = [numbers.from_array(np.zeros((), np.float32), "zero")]
    outputs = []
    for name, width in (("cls", 1), ("obj", 1), ("bbox", 4), ("kps", 10)):
        for stride in STRIDES:
            values = np.zeros((1, (side // stride) ** 2, width), np.float32)
            if stride == 32:
                # Cell (0, 0): centre = (cell + offset) * stride, size = exp(value) * stride.
                seen = {"cls": [1.0], "obj": [1.0], "bbox": [0.75, 1.0, 0.0, 0.0]}
                values[0, 0] = seen.get(name, [0.0] * width)
            constants.append(numbers.from_array(values, f"{name}_{stride}_values"))
            made = f"{name}_{stride}"
            nodes.append(helper.make_node("Add", [f"{made}_values", "nothing"], [made]))
            shape = list(values.shape)
            outputs.append(helper.make_tensor_value_info(made, onnx.TensorProto.FLOAT, shape))
    shown = helper.make_tensor_value_info("input", onnx.TensorProto.FLOAT, [1, 3, side, side])
    graph = helper.make_graph(nodes, "yunet", [shown], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, str(path))
    return path

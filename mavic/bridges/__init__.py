"""Bridges to other libraries: PettingZoo, Gymnasium, ONNX and marl-eval. They need the extra `interop`."""

"""Models as StableHLO programs, for other runtimes and other engines.

    exported = torch.export.export(model, (x,))
    module = torch_xla.stablehlo.exported_program_to_stablehlo(exported)
    module.save("folder")
    again = torch_xla.stablehlo.StableHLOGraphModule.load("folder")
    y = again(x)

The guide's page on export says what is in the folder, and how to put what only your compiler knows into a program.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from . import _XLAC, _export_bundle, _export_interpreter
from ._export_bundle import InputLocation as InputLocation
from ._export_bundle import StableHLOFunc as StableHLOFunc
from ._export_bundle import StableHLOFunctionMeta as StableHLOFunctionMeta
from ._export_bundle import StableHLOModelBundle as StableHLOModelBundle
from ._export_bundle import VariableSignature as VariableSignature
from ._export_bundle import VariableType as VariableType
from ._export_interpreter import XLAExportInterpreter as XLAExportInterpreter
from ._export_interpreter import run_decompositions as _run_decompositions
from ._export_sizes import SampleSizes

_METHOD = "forward"
# Of a module, for the sizes used last.
_MOST_COMPUTATIONS = 64


@dataclasses.dataclass
class StableHLOExportOptions:
    """How a model is exported.

    Attributes:
      include_human_readable_text: keep and save the program as text, too.
      override_tracing_arguments: arguments instead of the exported program's example.
      override_tracing_kwargs: keyword arguments instead of the example's.
      save_weights: whether `save` writes the weights.
      inline_all_constant: Python's numbers are constants of the program; otherwise those that are not 0, 1 or -1 are
        parameters of it.
      export_weights: whether the bundle has the weights at all.
      custom_ops_allowed_in_graph: namespaces of operators that become custom calls named "namespace.name.overload".
      export_node_metadata: the text's locations say which node of the graph an operation comes from.
    """

    include_human_readable_text: bool = True
    override_tracing_arguments: tuple[Any, ...] | None = None
    override_tracing_kwargs: dict[str, Any] | None = None
    save_weights: bool = True
    inline_all_constant: bool = True
    export_weights: bool = True
    custom_ops_allowed_in_graph: set[str] = dataclasses.field(default_factory=set)
    export_node_metadata: bool = False


class StableHLOGraphModule:
    """An exported model, which can be called, looked at and saved.

    Args:
      bundle: its programs and weights.
    """

    def __init__(self, bundle: StableHLOModelBundle) -> None:
        self._bundle = bundle
        self._computations: dict[tuple[str, tuple[int, ...]], Any] = {}  # by dynamic sizes
        self._weights: dict[tuple[VariableType, str | int], torch.Tensor] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the model gives for these arguments: tensors on the device.

        Their types are the example's, and so are the sizes of the dimensions that were not exported as dynamic ones.
        """
        return self.evaluate(None, args, kwargs)

    def evaluate(
        self, method_name: str | None, args: Sequence[Any], kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Calls one of the bundle's functions; None: the only one.

        Raises:
          ValueError: for arguments that are nested otherwise than the example's, or of other shapes.
          RuntimeError: for a bundle without the weights.
        """
        function = self._function(method_name)
        meta = function.meta
        leaves, spec = pytree.tree_flatten((tuple(args), kwargs or {}))
        if meta.input_pytree_spec is not None:
            wanted = pytree.treespec_loads(meta.input_pytree_spec)
            if spec != wanted:
                raise ValueError(f"the exported model takes arguments as {wanted}, not as {spec}")
        inputs = [
            self._input(location, signature, leaves)
            for location, signature in zip(meta.input_locations, meta.input_signature, strict=True)
        ]
        results = _XLAC._xla_user_computation(
            f"xla::{meta.name}", inputs, self._computation(function, inputs)
        )
        results = list(results)
        for place in meta.none_results or ():
            results.insert(place, None)
        if meta.output_pytree_spec is None:
            return results
        return pytree.tree_unflatten(results, pytree.treespec_loads(meta.output_pytree_spec))

    def get_stablehlo_bytecode(self, method_name: str | None = None) -> bytes:
        """The program of a function as a portable artifact of StableHLO."""
        return self._function(method_name).bytecode

    def get_stablehlo_text(self, method_name: str | None = None) -> str:
        """The program of a function as text."""
        function = self._function(method_name)
        if function.text is None:
            return _XLAC._stablehlo_text(function.bytecode)
        return function.text

    def save(self, directory_path: str, options: StableHLOExportOptions | None = None) -> None:
        """Writes the model into a folder, which is made."""
        options = options or StableHLOExportOptions()
        _export_bundle.save(
            self._bundle,
            directory_path,
            options.save_weights and options.export_weights,
            options.include_human_readable_text,
        )

    @classmethod
    def load(cls, directory_path: str) -> "StableHLOGraphModule":
        """Reads what `save` wrote.

        Raises:
          FileNotFoundError: for a folder without exported functions.
        """
        return cls(_export_bundle.load(directory_path))

    def _function(self, name: str | None) -> StableHLOFunc:
        functions = self._bundle.stablehlo_funcs
        if name is None and len(functions) == 1:
            return functions[0]
        for function in functions:
            if function.meta.name == (name or _METHOD):
                return function
        names = [function.meta.name for function in functions]
        raise ValueError(f"there is no function {name} in the exported model, which has {names}")

    def _computation(self, function: StableHLOFunc, inputs: Sequence[torch.Tensor]) -> Any:
        meta = function.meta
        sizes = tuple(
            value.shape[dimension]
            for value, signature in zip(inputs, meta.input_signature, strict=True)
            for dimension in signature.dynamic_dims
        )
        found = self._computations.pop((meta.name, sizes), None)
        if found is None:
            program = function.bytecode
            if sizes:
                program = _XLAC._instantiate_program(program, inputs)
            found = _XLAC._xla_op_computation_from_module_proto(meta.name, program)
        self._computations[meta.name, sizes] = found
        if len(self._computations) > _MOST_COMPUTATIONS:
            del self._computations[next(iter(self._computations))]
        return found

    def _input(
        self, location: InputLocation, signature: VariableSignature, arguments: Sequence[Any]
    ) -> torch.Tensor:
        if location.type_ == VariableType.INPUT_ARG:
            return torch.as_tensor(arguments[location.position]).to("xla")
        is_parameter = location.type_ == VariableType.PARAMETER
        key = (location.type_, location.name if is_parameter else location.position)
        if key not in self._weights:
            self._weights[key] = self._weight(location, signature).to("xla")
        return self._weights[key]

    def _weight(self, location: InputLocation, signature: VariableSignature) -> torch.Tensor:
        if location.type_ == VariableType.CONSTANT:
            array = self._bundle.additional_constants[location.position]
        elif location.name in self._bundle.state_dict:
            array = self._bundle.state_dict[location.name]
        else:
            raise RuntimeError(
                f"the exported model has no weight {location.name}: it was saved or exported without its weights"
            )
        return _export_bundle.from_numpy(array, signature.dtype)


def exported_program_to_stablehlo(
    exported_model: "torch.export.ExportedProgram", options: StableHLOExportOptions | None = None
) -> StableHLOGraphModule:
    """The exported program of torch as a StableHLO program. Nothing is computed.

    Args:
      exported_model: what `torch.export.export` gave.
      options: how.

    Raises:
      RuntimeError: for operators that no program can hold, since they run on the CPU or depend on values.
      ValueError: for a program that has neither example arguments nor overriding ones, or fewer than it takes.
    """
    return StableHLOGraphModule(_Export(exported_model, options or StableHLOExportOptions()).run())


def save_as_stablehlo(
    exported_model: "torch.export.ExportedProgram",
    stablehlo_dir: str,
    options: StableHLOExportOptions | None = None,
) -> None:
    """Writes the exported program of torch into a folder, as `exported_program_to_stablehlo` makes it."""
    exported_program_to_stablehlo(exported_model, options).save(stablehlo_dir, options)


def save_torch_model_as_stablehlo(
    torchmodel: torch.nn.Module,
    args: tuple[Any, ...],
    path: str,
    options: StableHLOExportOptions | None = None,
) -> None:
    """Exports a module with these arguments, and writes it into a folder."""
    options = dataclasses.replace(
        options or StableHLOExportOptions(), override_tracing_arguments=args
    )
    save_as_stablehlo(torch.export.export(torchmodel, args), path, options)


class _Export:
    """One export: the arguments of the graph, and what became of them in the program."""

    def __init__(self, exported: Any, options: StableHLOExportOptions) -> None:
        self._options = options
        self._exported = _run_decompositions(exported)
        self._arguments, self._in_spec = self._flatten_arguments()
        self._sizes = SampleSizes(self._exported)
        self._states = _export_interpreter.states_of(self._exported)
        self._locations: list[InputLocation] = []  # of the graph's tensors, in its order
        self._tensors: list[torch.Tensor] = []
        self._values: list[
            torch.Tensor
        ] = []  # the same, as the graph has them: with symbolic sizes
        self._signatures: list[VariableSignature] = []
        self._placeholders: list[Any] = []  # per placeholder: an index into these, or its value
        self._numbers: list[tuple[InputLocation, VariableSignature]] = []  # among the arguments
        self._collect_placeholders()

    def run(self) -> StableHLOModelBundle:
        bytecode, text, parameters = self._trace()
        constants: list[torch.Tensor] = []
        locations, signatures = [], []
        for parameter in parameters:
            if isinstance(parameter, int):
                locations.append(self._locations[parameter])
                signatures.append(self._signatures[parameter])
            else:
                locations.append(InputLocation.constant(len(constants)))
                signatures.append(_export_bundle.signature_of(parameter))
                constants.append(parameter)
        used = {parameter for parameter in parameters if isinstance(parameter, int)}
        meta = StableHLOFunctionMeta(
            name=_METHOD,
            stablehlo_version="0.0.0",
            input_signature=signatures,
            output_signature=self._result_signatures,
            input_locations=locations,
            unused_inputs=[
                (self._locations[i], self._signatures[i])
                for i in range(len(self._tensors))
                if i not in used
            ]
            + self._numbers,
            input_pytree_spec=pytree.treespec_dumps(self._in_spec),
            output_pytree_spec=pytree.treespec_dumps(
                _export_bundle.with_plain_tuples(self._exported.call_spec.out_spec)
            ),
            none_results=self._none_places() or None,
        )
        keeps_text = self._options.include_human_readable_text
        return StableHLOModelBundle(
            self._state_arrays(),
            [_export_bundle.to_numpy(constant) for constant in constants],
            [StableHLOFunc(meta, bytecode, text if keeps_text else None)],
        )

    def _flatten_arguments(self) -> tuple[list[Any], Any]:
        options = self._options
        args, kwargs = self._exported.example_inputs or (None, {})
        if options.override_tracing_arguments is not None:
            args = tuple(options.override_tracing_arguments)
        if options.override_tracing_kwargs is not None:
            kwargs = options.override_tracing_kwargs
        if args is None:
            raise ValueError(
                "the exported program has no example arguments: give StableHLOExportOptions' "
                "override_tracing_arguments"
            )
        return pytree.tree_flatten((args, kwargs))

    def _collect_placeholders(self) -> None:
        states = dict(_export_interpreter.state_placeholders(self._exported))
        nodes = [node for node in self._exported.graph.nodes if node.op == "placeholder"]
        position = -1
        for index, node in enumerate(nodes):
            spec = self._exported.graph_signature.input_specs[index]
            if spec.kind == torch.export.graph_signature.InputKind.TOKEN:
                self._placeholders.append((False, None))
            elif index in states:
                self._add_tensor(node, InputLocation.parameter(states[index]))
            elif spec.target is not None:
                raise NotImplementedError(
                    f"the exported program takes {spec.target}, which is no tensor"
                )
            else:
                position += 1
                self._add_argument(node, position)

    def _add_argument(self, node: torch.fx.Node, position: int) -> None:
        if position >= len(self._arguments):
            raise ValueError(
                f"the example has {len(self._arguments)} arguments, and the exported program takes more ({node.name})"
            )
        value = self._arguments[position]
        if isinstance(value, torch.Tensor):
            self._add_tensor(node, InputLocation.input_arg(position))
        elif isinstance(node.meta.get("val"), torch.SymInt):
            raise NotImplementedError(
                f"{node.name} is a number that varies: export the model once for each, or give it as a tensor's size"
            )
        else:
            self._placeholders.append((False, value))
            if isinstance(value, int | float):
                signature = VariableSignature([], type(value).__name__)
                self._numbers.append((InputLocation.input_arg(position), signature))

    def _add_tensor(self, node: torch.fx.Node, location: InputLocation) -> None:
        is_argument = location.type_ == VariableType.INPUT_ARG
        value = self._arguments[location.position] if is_argument else self._states[location.name]
        self._placeholders.append((True, len(self._tensors)))
        self._locations.append(location)
        self._tensors.append(value)
        self._values.append(node.meta.get("val", value))
        self._signatures.append(_export_bundle.signature_of(self._values[-1]))

    def _trace(self) -> tuple[bytes, str, list[int | torch.Tensor]]:
        if not self._sizes:
            return self._trace_with(self._tensors)
        shapes = zip(*[self._sizes.shapes(value) for value in self._values], strict=True)
        samples = []
        kept: list[int] = []
        for sample in shapes:
            arguments = [
                torch.empty(shape, dtype=tensor.dtype, device="meta")
                for shape, tensor in zip(sample, self._tensors, strict=True)
            ]
            if not samples:
                used = self._trace_with(arguments)[2]
                kept = self._sizes.lacking(self._values, {i for i in used if isinstance(i, int)})
            samples.append(self._trace_with(arguments, kept))
        parameters = samples[0][2]
        if any(not _are_equal(parameters, others) for _, _, others in samples):
            raise NotImplementedError(
                "a size is a number that the program takes: export it with inline_all_constant=True"
            )
        outputs = [value for value in self._user_outputs() if value is not None]
        self._result_signatures = [
            _export_bundle.signature_of(value) if isinstance(value, torch.Tensor) else signature
            for value, signature in zip(outputs, self._result_signatures, strict=True)
        ]
        bytecode, text = _XLAC._generalize_programs(
            [bytecode for bytecode, _, _ in samples], self._options.export_node_metadata
        )
        return bytecode, text, parameters

    def _trace_with(
        self, arguments: Sequence[torch.Tensor], kept: Sequence[int] = ()
    ) -> tuple[bytes, str, list[int | torch.Tensor]]:
        options = self._options
        graph = self._exported.graph_module
        interpreter = XLAExportInterpreter(
            graph,
            torch.device("xla"),
            options.custom_ops_allowed_in_graph,
            _export_interpreter.node_origin if options.export_node_metadata else None,
        )
        has_locations = options.export_node_metadata or _names_locations(graph)
        fallbacks: list[str] = []

        def call(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
            values = [
                tensors[value] if is_tensor else value for is_tensor, value in self._placeholders
            ]
            with torch.no_grad():
                return self._user_results(interpreter.run(*values))

        _XLAC._set_fallback_observer(fallbacks.append)
        try:
            exported = _XLAC._export_program(
                "",
                arguments,
                kept,
                options.inline_all_constant,
                has_locations,
                bool(self._sizes),
                call,
            )
        except Exception as error:
            if fallbacks:
                raise _not_capturable(fallbacks) from error
            raise
        finally:
            _XLAC._set_fallback_observer(None)
        if fallbacks:
            raise _not_capturable(fallbacks)
        return exported

    def _user_results(self, results: Sequence[Any]) -> list[torch.Tensor]:
        """The results that the model returns; those that are written into its state are left out."""
        returned = self._of_user(results)
        chosen = [_as_result(value) for value in returned if value is not None]
        self._result_signatures = [_export_bundle.signature_of(result) for result in chosen]
        return chosen

    def _user_outputs(self) -> list[Any]:
        """The graph's values of the model's results."""
        nodes = self._of_user(self._exported.graph.output_node().args[0])
        return [node.meta.get("val") if isinstance(node, torch.fx.Node) else node for node in nodes]

    def _none_places(self) -> list[int]:
        """Which of the model's results are None; the program gives the others."""
        return [place for place, value in enumerate(self._user_outputs()) if value is None]

    def _of_user(self, outputs: Sequence[Any]) -> list[Any]:
        """Of the graph's outputs those that the model returns."""
        specs = self._exported.graph_signature.output_specs
        wanted = torch.export.graph_signature.OutputKind.USER_OUTPUT
        return [output for spec, output in zip(specs, outputs, strict=True) if spec.kind == wanted]

    def _state_arrays(self) -> dict[str, Any]:
        if not self._options.export_weights:
            return {}
        return {name: _export_bundle.to_numpy(value) for name, value in self._states.items()}


def _are_equal(a: Sequence[int | torch.Tensor], b: Sequence[int | torch.Tensor]) -> bool:
    """Whether programs take the same: arguments by index, and constants."""
    return len(a) == len(b) and all(
        torch.equal(x, y)
        if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)
        else not isinstance(x, torch.Tensor) and x == y
        for x, y in zip(a, b, strict=True)
    )


def _as_result(value: Any) -> torch.Tensor:
    """A result as a program can give it."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, int | float | complex):
        return torch.full((), value, device="xla")
    raise NotImplementedError(
        f"the model returns {value!r}: a program gives tensors and numbers. Leave it out of the results"
    )


def _names_locations(graph: torch.fx.GraphModule) -> bool:
    """Whether the graph itself says where its operations come from."""
    return any("write_mlir_debuginfo" in str(node.target) for node in graph.graph.nodes)


def _not_capturable(operators: Sequence[str]) -> RuntimeError:
    names = "\n".join(dict.fromkeys(operators))
    return RuntimeError(f"This model contains ops not capturable by Pytorch/XLA: {names}\n")

#include "python/bindings.h"

#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <optional>
#include <span>

#include "aten/dtype.h"
#include "aten/exported_program.h"
#include "aten/hlo_operations.h"
#include "aten/tensor.h"
#include "hlo/bytecode.h"
#include "hlo/marks.h"
#include "hlo/text_reader.h"
#include "hlo/text_writer.h"
#include "lazy/location.h"
#include "lazy/programs_of_any_size.h"
#include "pjrt/client/foreign_functions.h"
#include "python/user_code.h"

namespace torch_xla {
namespace {

namespace py = pybind11;

// --- Attributes

template <typename T>
hlo::AttributeValue TensorAttribute(const py::handle& list) {
  std::vector<T> values;
  for (const py::handle value : list) values.push_back(py::cast<T>(value));
  return {.value = hlo::Literal::FromVector(values)};
}

hlo::AttributeValue BoolTensorAttribute(const py::handle& list) {
  hlo::Literal literal(hlo::Shape(hlo::ElementType::kPred, {static_cast<int64_t>(py::len(list))}));
  size_t i = 0;
  for (const py::handle value : list) {
    literal.mutable_bytes()[i++] = static_cast<std::byte>(py::cast<bool>(value));
  }
  return {.value = std::move(literal)};
}

hlo::AttributeValue AttributeFromPython(const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) return {.value = py::cast<bool>(value)};
  if (py::isinstance<py::int_>(value)) {
    return {.value = py::cast<int64_t>(value), .element_type = hlo::ElementType::kS64};
  }
  if (py::isinstance<py::float_>(value)) {
    return {.value = py::cast<double>(value), .element_type = hlo::ElementType::kF32};
  }
  if (py::isinstance<py::str>(value)) return {.value = py::cast<std::string>(value)};
  TORCH_CHECK_VALUE(py::isinstance<py::sequence>(value) && py::len(value) > 0,
                    "an attribute is a string, a number, a bool or a list of numbers, not ",
                    py::cast<std::string>(py::repr(value)));
  const py::object first = value[py::int_(0)];
  if (py::isinstance<py::bool_>(first)) return BoolTensorAttribute(value);
  if (py::isinstance<py::int_>(first)) return TensorAttribute<int64_t>(value);
  return TensorAttribute<float>(value);
}

hlo::AttributeDictionary AttributesFromPython(const py::dict& attributes) {
  hlo::AttributeDictionary out;
  for (const auto& [name, value] : attributes) {
    out.emplace(py::cast<std::string>(name), AttributeFromPython(value));
  }
  return out;
}

// --- Custom calls

std::vector<at::Tensor> CustomCall(const std::vector<at::Tensor>& operands,
                                   const std::string& target,
                                   const std::vector<std::vector<int64_t>>& shapes,
                                   const std::vector<at::ScalarType>& types, bool has_side_effect,
                                   const std::string& backend_config, int64_t api_version,
                                   const py::dict& attributes) {
  TORCH_CHECK_VALUE(!shapes.empty() && shapes.size() == types.size(), "the custom call ", target,
                    " has ", shapes.size(), " shapes and ", types.size(),
                    " types: one of each for every result");
  constexpr int64_t kTypedCall = 4;
  TORCH_CHECK_VALUE(api_version != kTypedCall || backend_config.empty(), "the custom call ", target,
                    " asks for api_version 4, whose configuration is a dictionary of attributes");
  hlo::CustomCallAttributes call{.target = target,
                                 .has_side_effect = has_side_effect,
                                 .api_version = std::max<int64_t>(api_version, 1),
                                 .backend_config = backend_config,
                                 .dictionary = AttributesFromPython(attributes)};
  std::vector<hlo::Shape> results;
  for (size_t i = 0; i < shapes.size(); ++i) {
    results.emplace_back(ToElementType(types[i]), shapes[i]);
  }
  return WithoutGil([&] {
    const c10::Device device =
        operands.empty() ? ToTorchDevice(DeviceFromString("")) : operands[0].device();
    return RecordCustomCall(device, operands, std::move(call), std::move(results));
  });
}

void RegisterCallTarget(const std::string& target, const py::capsule& handler,
                        const std::string& platform) {
  void* function = handler.get_pointer();
  WithoutGil([&] {
    const pjrt::Plugin& plugin = DeviceFromString("")->client().plugin();
    pjrt::RegisterForeignFunction(plugin, target, function, platform);
  });
}

// --- Exports

py::tuple Export(const std::string& device, const std::vector<at::Tensor>& arguments,
                 const std::vector<int64_t>& kept, bool inlines_numbers, bool has_locations,
                 bool is_sample, const py::function& function) {
  const auto call = [&](const std::vector<at::Tensor>& placeholders) {
    const UserCode user_code;
    return function(placeholders).cast<std::vector<at::Tensor>>();
  };
  std::string bytecode, text;
  const ExportedProgram program = WithoutGil([&] {
    std::optional<lazy::LoweringForAnySize> for_any_size;
    if (is_sample) for_any_size.emplace();
    ExportedProgram exported =
        ExportFunction(DeviceFromString(device), arguments, kept, inlines_numbers, call);
    bytecode = hlo::WriteBytecode(*exported.module);
    text = hlo::WriteStablehloText(*exported.module,
                                   {.locations = has_locations || lazy::ProgramsHaveLocations()});
    return exported;
  });
  py::list parameters;
  for (const auto& parameter : program.parameters) {
    std::visit([&](const auto& value) { parameters.append(py::cast(value)); }, parameter);
  }
  return py::make_tuple(py::bytes(bytecode), text, parameters);
}

py::tuple Generalize(const std::vector<std::string>& samples, bool has_locations) {
  std::string bytecode, text;
  WithoutGil([&] {
    const auto module = lazy::GeneralizePrograms(samples);
    bytecode = hlo::WriteBytecode(*module);
    text = hlo::WriteStablehloText(*module,
                                   {.locations = has_locations || lazy::ProgramsHaveLocations()});
  });
  return py::make_tuple(py::bytes(bytecode), text);
}

py::bytes Instantiate(const std::string& program, const std::vector<at::Tensor>& arguments) {
  std::vector<hlo::Shape> shapes;
  for (const at::Tensor& argument : arguments) {
    shapes.emplace_back(ToElementType(argument.scalar_type()), argument.sizes().vec());
  }
  return py::bytes(
      WithoutGil([&] { return hlo::WriteBytecode(*lazy::InstantiateProgram(program, shapes)); }));
}

}  // namespace

void BindExport(py::module_& m) {
  m.def("_export_program", &Export);
  m.def("_generalize_programs", &Generalize);
  m.def("_instantiate_program", &Instantiate);
  m.def("_stablehlo_text", [](const py::bytes& program) {
    const auto bytes = std::string(program);
    return hlo::WriteStablehloText(*hlo::ReadStablehlo(std::as_bytes(std::span(bytes))));
  });
  m.def("_xla_mark_tensor", [](const at::Tensor& x, const std::string& name, int64_t position,
                               const std::string& id, bool is_input, const py::dict& attributes) {
    const hlo::CompositeMark mark{name, id, position, is_input, AttributesFromPython(attributes)};
    return WithoutGil([&] { return RecordCompositeMark(x, mark); });
  });
  m.def("_xla_mark_location", [](const at::Tensor& x, const std::string& name) {
    return WithoutGil([&] { return RecordLocationMark(x, name); });
  });
  m.def("_xla_register_custom_call_target", &RegisterCallTarget, py::arg("fn_name"),
        py::arg("function_ptr"), py::arg("platform"));
  m.def("_xla_custom_call", &CustomCall, py::arg("operands"), py::arg("target"), py::arg("shapes"),
        py::arg("dtypes"), py::arg("has_side_effect") = false, py::arg("backend_config") = "",
        py::arg("api_version") = 0, py::arg("frontend_attributes") = py::dict());
}

}  // namespace torch_xla

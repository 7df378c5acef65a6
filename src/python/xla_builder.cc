#include "python/xla_builder.h"

#include <torch/csrc/utils/pybind.h>

#include <map>
#include <span>

#include "aten/dtype.h"
#include "aten/hlo_operations.h"
#include "aten/tensor.h"
#include "hlo/bytecode.h"
#include "hlo/hlo_text_writer.h"
#include "hlo/text_reader.h"
#include "python/bindings.h"

namespace torch_xla {

namespace py = pybind11;

namespace {

void CheckArguments(const UserComputation& computation, const std::vector<at::Tensor>& arguments) {
  std::vector<hlo::Shape> wanted;
  for (const UserShape& shape : computation.parameters) shape.Flatten(wanted);
  TORCH_CHECK(arguments.size() == wanted.size(), computation.name, " takes ", wanted.size(),
              " tensors, not ", arguments.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    TORCH_CHECK(IsXla(arguments[i]), computation.name, " takes xla tensors, and argument ", i,
                " is on ", arguments[i].device());
    const hlo::Shape given(ToElementType(arguments[i].scalar_type()), arguments[i].sizes().vec());
    TORCH_CHECK(given == wanted[i], computation.name, " takes ", wanted[i].ToString(),
                " as argument ", i, ", not ", given.ToString());
  }
}

std::vector<at::Tensor> RunUserComputation(const std::string&,
                                           const std::vector<at::Tensor>& arguments,
                                           const std::shared_ptr<UserComputation>& computation) {
  return WithoutGil([&] {
    CheckArguments(*computation, arguments);
    const c10::Device device =
        arguments.empty() ? ToTorchDevice(DeviceFromString("")) : arguments[0].device();
    return RecordProgram(device, arguments, {computation->module, computation->hash});
  });
}

std::shared_ptr<UserComputation> Finish(const std::string& name,
                                        std::unique_ptr<hlo::Module> module) {
  auto computation = std::make_shared<UserComputation>();
  computation->name = name;
  for (const hlo::Instruction* parameter : module->entry()->parameters()) {
    computation->parameters.push_back({.array = parameter->shape()});
  }
  const auto& results = module->entry()->results();
  if (results.size() == 1) {
    computation->result.array = results[0]->shape();
  } else {
    computation->result.is_tuple = true;
    for (const hlo::Instruction* result : results) {
      computation->result.elements.push_back({.array = result->shape()});
    }
  }
  computation->hash = module->Hash();
  computation->module = std::move(module);
  return computation;
}

std::shared_ptr<UserComputation> FromProgram(const std::string& name, const std::string& program) {
  const auto bytes = std::as_bytes(std::span(program));
  TORCH_CHECK_VALUE(
      hlo::IsBytecode(bytes) || program.find("func") != std::string::npos,
      "the program is neither StableHLO bytecode nor StableHLO text; an HLO proto is not read. Its "
      "maker has StableHLO too: jax.jit(f).lower(...).compiler_ir(\"stablehlo\"), for example");
  return Finish(name, hlo::ReadStablehlo(bytes));
}

const std::map<std::string, hlo::ElementType>& ElementTypes() {
  static const auto* types = [] {
    auto* map = new std::map<std::string, hlo::ElementType>;
    for (int i = 1; i < static_cast<int>(hlo::ElementType::kToken); ++i) {
      const auto type = static_cast<hlo::ElementType>(i);
      map->emplace(hlo::ShortName(type), type);
    }
    return map;
  }();
  return *types;
}

}  // namespace

void UserShape::Flatten(std::vector<hlo::Shape>& out) const {
  if (!is_tuple) {
    out.push_back(array);
    return;
  }
  for (const UserShape& element : elements) element.Flatten(out);
}

std::string UserShape::ToString() const {
  if (!is_tuple) return array.ToString();
  std::string out;
  for (const UserShape& element : elements) {
    out += (out.empty() ? "" : ", ") + element.ToString();
  }
  return "(" + out + ")";
}

UserShape UserOp::shape() const {
  if (!is_tuple()) return {.array = value->shape()};
  UserShape shape{.is_tuple = true};
  for (const UserOp& element : elements) shape.elements.push_back(element.shape());
  return shape;
}

void UserOp::Flatten(std::vector<hlo::Value>& out) const {
  if (!is_tuple()) {
    out.push_back(value);
    return;
  }
  for (const UserOp& element : elements) element.Flatten(out);
}

UserOp UserOp::FromLeaves(std::shared_ptr<UserBuilder> builder, const UserShape& shape,
                          std::span<const hlo::Value>& leaves) {
  UserOp op{.builder = builder};
  if (shape.is_tuple) {
    for (const UserShape& element : shape.elements) {
      op.elements.push_back(FromLeaves(builder, element, leaves));
    }
  } else {
    op.value = leaves.front();
    leaves = leaves.subspan(1);
  }
  return op;
}

UserBuilder::UserBuilder(const std::string& name)
    : name_(name), module_(name), builder_(module_.AddComputation("main")) {
  module_.set_entry(builder_.computation());
}

UserOp UserBuilder::Parameter(std::shared_ptr<UserBuilder> self, int64_t number,
                              const UserShape& shape) {
  TORCH_CHECK_VALUE(number == static_cast<int64_t>(parameters_.size()),
                    "parameters are made in order: the next one of ", name_, " is ",
                    parameters_.size(), ", not ", number);
  parameters_.push_back(shape);
  std::vector<hlo::Shape> shapes;
  shape.Flatten(shapes);
  std::vector<hlo::Value> leaves;
  for (const hlo::Shape& leaf : shapes) leaves.push_back(builder_.Parameter(leaf));
  std::span<const hlo::Value> rest(leaves);
  return UserOp::FromLeaves(std::move(self), shape, rest);
}

std::shared_ptr<UserComputation> UserBuilder::Build(const std::string& name, const UserOp& root) {
  std::vector<hlo::Value> results;
  root.Flatten(results);
  TORCH_CHECK_VALUE(!results.empty(), "the computation ", name, " has no result");
  builder_.computation()->set_results(std::move(results));
  auto module = module_.Clone();
  module->entry()->RemoveDeadInstructions();
  module->RemoveUnreachableComputations();
  auto computation = Finish(name, std::move(module));
  computation->parameters = parameters_;
  computation->result = root.shape();
  return computation;
}

UserShape ShapeFromPython(const py::handle& shape) {
  if (!py::isinstance<py::dict>(shape)) {
    UserShape tuple{.is_tuple = true};
    for (const py::handle element : shape) tuple.elements.push_back(ShapeFromPython(element));
    return tuple;
  }
  const auto fields = py::reinterpret_borrow<py::dict>(shape);
  const auto name = py::cast<std::string>(fields["type"]);
  const auto type = ElementTypes().find(name);
  TORCH_CHECK_VALUE(type != ElementTypes().end(), "there is no element type ", name);
  if (fields.contains("dynamic_dimensions")) {
    for (const py::handle dynamic : fields["dynamic_dimensions"]) {
      TORCH_CHECK_NOT_IMPLEMENTED(!py::cast<bool>(dynamic),
                                  "dimensions whose size only the running program knows are not "
                                  "built: give the greatest size, and mask what is beyond");
    }
  }
  return {.array = hlo::Shape(type->second, py::cast<hlo::Dimensions>(fields["sizes"]))};
}

py::object ShapeToPython(const UserShape& shape) {
  if (shape.is_tuple) {
    py::list elements;
    for (const UserShape& element : shape.elements) elements.append(ShapeToPython(element));
    return elements;
  }
  py::dict out;
  out["type"] = std::string(hlo::ShortName(shape.array.element_type()));
  out["sizes"] = py::tuple(py::cast(shape.array.dimensions()));
  return out;
}

void BindXlaBuilder(py::module_& m) {
  py::class_<UserBuilder, std::shared_ptr<UserBuilder>>(m, "XlaBuilder");
  py::class_<UserOp>(m, "XlaOp");
  py::class_<UserComputation, std::shared_ptr<UserComputation>>(m, "XlaComputation");
  m.def("_xla_op_create_builder",
        [](const std::string& name) { return std::make_shared<UserBuilder>(name); });
  m.def("_xla_op_builder", [](const UserOp& op) { return op.builder; });
  m.def("_xla_op_shape", [](const UserOp& op) { return ShapeToPython(op.shape()); });
  m.def("_xla_op_tensor_shape", [](const at::Tensor& tensor, const std::string&) {
    return ShapeToPython(
        {.array = hlo::Shape(ToElementType(tensor.scalar_type()), tensor.sizes().vec())});
  });
  m.def("_xla_op_param",
        [](const std::shared_ptr<UserBuilder>& builder, int64_t number, const py::object& shape) {
          return builder->Parameter(builder, number, ShapeFromPython(shape));
        });
  m.def("_xla_op_create", &CreateUserOp);
  m.def("_xla_op_build", [](const std::string& name, const UserOp& root) {
    return root.builder->Build(name, root);
  });
  m.def("_xla_op_computation_from_module_proto",
        [](const std::string& name, const py::bytes& program) {
          return FromProgram(name, std::string(program));
        });
  m.def("_xla_computation_text",
        [](const UserComputation& computation) { return hlo::WriteHloText(*computation.module); });
  m.def("_xla_user_computation", &RunUserComputation);
}

}  // namespace torch_xla

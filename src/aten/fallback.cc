// What becomes of an operator that has no kernel for xla: an in-place or out= variant runs the
// functional operator and writes the result into its target; a decomposition that Python registered
// runs; else the operator runs on the CPU, and is counted as `aten::name`.
#include "aten/fallback.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "aten/generator.h"
#include "aten/layout.h"
#include "aten/out_rule.h"
#include "aten/tensor.h"
#include "aten/view_flags.h"
#include "lazy/cut_reason.h"
#include "lazy/metrics.h"
#include "process/fork.h"

namespace torch_xla {
namespace {

using c10::Argument;
using c10::FunctionSchema;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

bool IsMutable(const Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// Whether the operator's result goes there. An operator with out= may write into other arguments
// too, such as running statistics; its functional form does then as well.
bool IsTarget(const Argument& argument, bool is_in_place) {
  return is_in_place ? IsMutable(argument) : argument.is_out();
}

// How to run an operator that writes its results into arguments by one that does not.
struct FunctionalPlan {
  std::optional<OperatorHandle> functional;
  std::vector<size_t> inputs;   // the functional operator's arguments among ours
  std::vector<size_t> targets;  // for each of its results, our argument that receives it
  OutRule rule;
};

bool SameType(const Argument& a, const Argument& b) { return *a.type() == *b.type(); }

// True if `candidate` takes `schema`'s arguments in order, but for out= ones.
bool Matches(const FunctionSchema& schema, const FunctionSchema& candidate, bool is_in_place,
             FunctionalPlan* plan) {
  plan->inputs.clear();
  plan->targets.clear();
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const Argument& argument = schema.arguments()[i];
    bool is_target = IsTarget(argument, is_in_place);
    if (is_target) plan->targets.push_back(i);
    if (is_target && !is_in_place) continue;
    size_t at = plan->inputs.size();
    if (at >= candidate.arguments().size()) return false;
    const Argument& other = candidate.arguments()[at];
    bool is_written = IsMutable(argument) && !is_target;
    if (IsMutable(other) != is_written || !SameType(argument, other)) return false;
    plan->inputs.push_back(i);
  }
  return plan->inputs.size() == candidate.arguments().size() &&
         plan->targets.size() == candidate.returns().size() && !plan->targets.empty();
}

FunctionalPlan FindFunctional(const FunctionSchema& schema) {
  FunctionalPlan plan;
  bool mutates = false;
  for (const Argument& argument : schema.arguments()) mutates = mutates || IsMutable(argument);
  if (!mutates) return plan;
  std::string name = schema.name();
  bool is_in_place = name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_';
  if (is_in_place) name.pop_back();
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& candidate : dispatcher.getAllOpNames()) {
    if (candidate.name != name) continue;
    auto handle = dispatcher.findSchema(candidate);
    if (!handle) continue;
    if (!Matches(schema, handle->schema(), is_in_place, &plan)) continue;
    plan.functional = handle;
    plan.rule = OutRuleOf(schema.name(), schema.overload_name());
    return plan;
  }
  return FunctionalPlan();
}

const FunctionalPlan& PlanFor(const OperatorHandle& op) {
  static auto* mutex = new process::Mutex;
  static auto* plans = new std::unordered_map<c10::OperatorName, FunctionalPlan>;
  std::lock_guard lock(*mutex);
  auto it = plans->find(op.operator_name());
  if (it == plans->end()) {
    it = plans->emplace(op.operator_name(), FindFunctional(op.schema())).first;
  }
  return it->second;
}

// Gives the target of out= the result's shape, and where that is another one, the result's strides.
void ResizeTarget(const at::Tensor& target, const at::Tensor& result) {
  const at::IntArrayRef sizes = result.sizes();
  if (target.sizes() == sizes) return;
  if (target.numel() != 0) {
    TORCH_WARN("An output with one or more elements was resized since it had shape ",
               target.sizes(), ", which does not match the required output shape ", sizes,
               ". This behavior is deprecated, and in a future PyTorch release outputs will not be "
               "resized unless they have zero elements.");
  }
  target.resize_(sizes);
  if (result.is_non_overlapping_and_dense()) LayOut(target, result.strides());
}

// Throws if a target, once it has the result's size, shares memory with an input: any, where the
// rule says so, else a part of it.
void CheckInputApart(const OutRule& rule, const at::Tensor& target, const at::Tensor& input,
                     const at::Tensor& result) {
  if (rule.apart) return CheckApart(target, input, result.numel());
  const bool is_resized = target.sizes() != result.sizes();
  if (!is_resized) CheckNoPartialOverlap(target, input);
}

// The same of all inputs of the functional operator.
void CheckTargetApart(const FunctionalPlan& plan, const std::vector<IValue>& arguments,
                      size_t place, const at::Tensor& result) {
  const at::Tensor& target = arguments[place].toTensor();
  for (size_t input : plan.inputs) {
    const IValue& argument = arguments[input];
    if (input == place) continue;
    if (argument.isTensor()) CheckInputApart(plan.rule, target, argument.toTensor(), result);
    if (!argument.isTensorList()) continue;
    for (const at::Tensor& tensor : argument.toTensorVector()) {
      CheckInputApart(plan.rule, target, tensor, result);
    }
  }
}

void WriteResult(const std::string& name, const OutRule& rule, const at::Tensor& target,
                 const at::Tensor& result, bool is_out, bool reads_nothing) {
  TORCH_CHECK(target.device().is_xla(), name,
              ": expected the out tensor to be on the same device, xla, but got one on ",
              target.device());
  // What a sparse factor leaves of a dense tensor is dense where it is written in place.
  if (!is_out && target.layout() == at::kStrided && result.layout() == at::kSparse) {
    return WriteResult(name, rule, target, result.to_dense(), is_out, reads_nothing);
  }
  TORCH_CHECK(target.layout() == result.layout(), name, ": expected the out tensor to have ",
              result.layout(), " layout, but got ", target.layout());
  if (target.layout() != at::kStrided) {  // torch's own class, which does the rest
    CheckOutType(OutRule(), result.scalar_type(), target, reads_nothing);
    target.copy_(result);
    return;
  }
  CheckOutType(is_out ? rule : OutRule(), result.scalar_type(), target, reads_nothing);
  CheckExpanded(rule, name, target);
  if (is_out) ResizeTarget(target, result);
  TORCH_CHECK(target.sizes() == result.sizes(), "output with shape ", target.sizes(),
              " doesn't match the broadcast shape ", result.sizes());
  WriteInto(target, ResolveFlags(target, ReadValue(result)));
}

// Eager's kernel that leaves NaN out has integers where they are named as the type, and no others.
void CheckAskedType(const FunctionSchema& schema, const at::Tensor& x, at::ScalarType type) {
  const bool has_kernel = schema.name() != "aten::nansum" || !x.is_floating_point() ||
                          !c10::isIntegralType(type, /*includeBool=*/true);
  TORCH_CHECK_NOT_IMPLEMENTED(has_kernel, "\"nansum_cpu\" not implemented for '", type, "'");
}

// The functional operator's arguments. Where the target's type stands for a missing dtype, it is
// put there.
Stack FunctionalArguments(const FunctionalPlan& plan, const FunctionSchema& schema,
                          const std::vector<IValue>& arguments) {
  Stack inner;
  for (size_t i : plan.inputs) {
    inner.push_back(arguments[i]);
    bool is_missing = plan.rule.type == OutType::kAsked && arguments[i].isNone() &&
                      schema.arguments()[i].name() == "dtype";
    if (!is_missing) continue;
    inner.back() = arguments[plan.targets[0]].toTensor().scalar_type();
    CheckAskedType(schema, arguments[0].toTensor(), inner.back().toScalarType());
  }
  return inner;
}

// The functional operators that are running for a variant of theirs: a composite functional
// operator that itself calls the out= variant would go round in circles.
thread_local std::vector<const c10::OperatorName*> running;

bool IsRunning(const OperatorHandle& op) {
  for (const auto* name : running) {
    if (*name == op.operator_name()) return true;
  }
  return false;
}

struct RunningScope {
  explicit RunningScope(const OperatorHandle& op) { running.push_back(&op.operator_name()); }
  ~RunningScope() { running.pop_back(); }
};

bool RunFunctional(const OperatorHandle& op, Stack* stack) {
  const FunctionalPlan& plan = PlanFor(op);
  if (!plan.functional || IsRunning(*plan.functional)) return false;
  const FunctionSchema& schema = op.schema();
  size_t count = schema.arguments().size();
  std::vector<IValue> arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  Stack inner = FunctionalArguments(plan, schema, arguments);
  {
    RunningScope scope(*plan.functional);
    plan.functional->callBoxed(&inner);
  }
  bool is_out = plan.inputs.size() != count;
  bool reads_nothing = arguments[0].isTensor() && arguments[0].toTensor().numel() == 0;
  for (size_t i = 0; i < plan.targets.size(); ++i) {
    const IValue& target = arguments[plan.targets[i]];
    if (target.isTensorList()) {
      auto targets = target.toTensorVector();
      auto results = inner[i].toTensorVector();
      TORCH_CHECK(targets.size() == results.size(), schema.name(), ": expected ", results.size(),
                  " out tensors, got ", targets.size());
      for (size_t j = 0; j < targets.size(); ++j) {
        WriteResult(schema.name(), plan.rule, targets[j], results[j], is_out, reads_nothing);
      }
    } else {
      CheckTargetApart(plan, arguments, plan.targets[i], inner[i].toTensor());
      WriteResult(schema.name(), plan.rule, target.toTensor(), inner[i].toTensor(), is_out,
                  reads_nothing);
    }
  }
  torch::jit::drop(*stack, count);
  size_t returned = std::min(schema.returns().size(), plan.targets.size());
  for (size_t i = 0; i < returned; ++i) stack->push_back(arguments[plan.targets[i]]);
  return true;
}

bool HasXlaArgument(const OperatorHandle& op, const Stack& stack) {
  size_t count = op.schema().arguments().size();
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    if (stack[i].isTensor() && IsXla(stack[i].toTensor())) return true;
    if (stack[i].isDevice() && stack[i].toDevice().is_xla()) return true;
    if (stack[i].isTensorList()) {
      for (const at::Tensor& tensor : stack[i].toTensorVector()) {
        if (IsXla(tensor)) return true;
      }
    }
    if (stack[i].isOptionalTensorList()) {
      for (const std::optional<at::Tensor> tensor : stack[i].toOptionalTensorList()) {
        if (tensor && IsXla(*tensor)) return true;
      }
    }
  }
  return false;
}

// The index of the xla device that the arguments name.
int DeviceIndex(const Stack& arguments) {
  for (const IValue& argument : arguments) {
    if (argument.isTensor() && IsXla(argument.toTensor())) {
      return argument.toTensor().device().index();
    }
  }
  return 0;
}

// The CPU's kernel draws from a CPU generator, which the device's generator seeds.
void ReplaceGenerator(const OperatorHandle& op, Stack* stack) {
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() != "generator") continue;
    IValue& given = *(stack->end() - static_cast<std::ptrdiff_t>(arguments.size() - i));
    std::optional<at::Generator> generator;
    if (!given.isNone()) generator = given.toGenerator();
    TORCH_CHECK(HasXlaArgument(op, *stack), "Expected a 'cpu' device type for generator but found ",
                "'xla'");
    given = CpuGenerator(generator, DeviceIndex(*stack));
  }
}

// Functions that may be replaced while another thread calls them.
struct Hooks {
  process::Mutex mutex;
  std::shared_ptr<const Decomposer> decomposer;
  std::shared_ptr<const FallbackObserver> observer;
  static Hooks& Get() {
    static Hooks* hooks = new Hooks;
    return *hooks;
  }
};

template <typename Function>
void SetHook(std::shared_ptr<const Function> Hooks::* hook, Function function) {
  std::shared_ptr<const Function> kept;
  if (function) kept = std::make_shared<const Function>(std::move(function));
  std::lock_guard lock(Hooks::Get().mutex);
  std::swap(Hooks::Get().*hook, kept);  // the old one is destroyed after unlocking
}

template <typename Function>
std::shared_ptr<const Function> GetHook(std::shared_ptr<const Function> Hooks::* hook) {
  std::lock_guard lock(Hooks::Get().mutex);
  return Hooks::Get().*hook;
}

// The storages that an operator's arguments lie in.
std::vector<const lazy::Storage*> StoragesOf(const OperatorHandle& op, const Stack& stack) {
  std::vector<const lazy::Storage*> storages;
  for (size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); ++i) {
    if (!stack[i].isTensor()) continue;
    const at::Tensor& tensor = stack[i].toTensor();
    if (IsXla(tensor) && !IsTracedOnly(tensor))
      storages.push_back(Impl(tensor)->xla_storage().get());
  }
  return storages;
}

// A decomposition may hand on what it was given where it finds nothing to do, such as the shuffle
// of one channel. Who called the operator was promised a tensor that nothing else changes.
void CopyHandedOn(const FunctionSchema& schema, const std::vector<const lazy::Storage*>& given,
                  Stack* stack) {
  const auto& returns = schema.returns();
  for (size_t i = 0; i < returns.size(); ++i) {
    IValue& result = *(stack->end() - static_cast<std::ptrdiff_t>(returns.size() - i));
    if (returns[i].alias_info() != nullptr || !result.isTensor()) continue;
    const at::Tensor& tensor = result.toTensor();
    if (!IsXla(tensor) || IsTracedOnly(tensor)) continue;
    const lazy::Storage* storage = Impl(tensor)->xla_storage().get();
    if (std::find(given.begin(), given.end(), storage) != given.end()) result = tensor.clone();
  }
}

TORCH_LIBRARY_IMPL(_, XLA, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&FallBack>());
}

// torch's own out= variants of these know no xla, or check less than eager's.
TORCH_LIBRARY_IMPL(aten, XLA, m) {
  // torch's own reads memory; ours is a composition.
  m.impl("_grouped_mm", torch::CppFunction::makeFromBoxedFunction<&FallBack>());
  m.impl("addr.out", torch::CppFunction::makeFromBoxedFunction<&FallBack>());
  m.impl("all.dims_out", torch::CppFunction::makeFromBoxedFunction<&FallBack>());
  m.impl("any.dims_out", torch::CppFunction::makeFromBoxedFunction<&FallBack>());
  m.impl("cummax.out", torch::CppFunction::makeFromBoxedFunction<&FallBack>());
  m.impl("cummin.out", torch::CppFunction::makeFromBoxedFunction<&FallBack>());
  m.impl("mode.values", torch::CppFunction::makeFromBoxedFunction<&FallBack>());
}

// Between views, functionalize calls what does nothing; so does this, for a batch.
TORCH_LIBRARY_IMPL(aten, FuncTorchBatched, m) {
  m.impl("_propagate_xla_data", +[](const at::Tensor&, const at::Tensor&) {});
}

// torch has no kernel for autocast on xla, not even one that does nothing.
TORCH_LIBRARY_IMPL(_, AutocastXLA, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

}  // namespace

bool RunByOthers(const OperatorHandle& op, Stack* stack) {
  if (RunFunctional(op, stack)) return true;
  const auto decomposer = GetHook(&Hooks::decomposer);
  if (!decomposer) return false;
  RunningScope scope(op);
  const auto given = StoragesOf(op, *stack);
  if (!(*decomposer)(op, stack)) return false;
  CopyHandedOn(op.schema(), given, stack);
  return true;
}

void CountFallback(const OperatorHandle& op) {
  lazy::Count(lazy::Counter(op.schema().name()));
  if (auto observer = GetHook(&Hooks::observer)) (*observer)(op.schema().name());
}

void FallBack(const OperatorHandle& op, Stack* stack) {
  if (RunByOthers(op, stack)) return;
  const lazy::CutScope scope(lazy::CutReason::Kind::kFallback, op.schema().name());
  CountFallback(op);
  ReplaceGenerator(op, stack);
  at::native::cpu_fallback(op, stack, /*error_on_views=*/HasXlaArgument(op, *stack));
}

void WriteInPlace(const InPlaceOperator& op, const at::Tensor& target, const at::Tensor& result,
                  std::initializer_list<const at::Tensor*> inputs) {
  for (const at::Tensor* input : inputs) CheckInputApart(op.rule, target, *input, result);
  WriteResult(op.name, op.rule, target, result, /*is_out=*/false, target.numel() == 0);
}

void SetDecomposer(Decomposer decomposer) { SetHook(&Hooks::decomposer, std::move(decomposer)); }
void SetFallbackObserver(FallbackObserver observer) {
  SetHook(&Hooks::observer, std::move(observer));
}

}  // namespace torch_xla

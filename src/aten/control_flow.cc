#include "aten/control_flow.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "aten/loop_rows.h"
#include "aten/op.h"
#include "aten/placeholder.h"
#include "aten/tensor.h"
#include "aten/value_check.h"
#include "lazy/capture.h"

namespace torch_xla {
namespace {

// --- Lowerings

// The operands of a region; where a constant of the program is one, it stays one.
Values Own(Builder& b, std::span<const Value> parameters, std::span<const Value> operands) {
  Values values(parameters.begin(), parameters.end());
  for (size_t i = 0; i < values.size(); ++i) {
    const Value operand = operands[i];
    if (operand->IsConstant() && operand->shape().rank() == 0) {
      values[i] = b.Constant(operand->literal());
    }
  }
  return values;
}

Value U64(Builder& b, uint64_t value) {
  return b.ConstantScalar(ElementType::kU64, static_cast<int64_t>(value));
}

// The key of random numbers, u64[2], for one run of a loop's body: another bijection for each run,
// so that the loops of nested loops do not meet (MurmurHash3's last step).
Value KeyOfRun(Builder& b, Value key, Value run) {
  Value state = b.Reshape(b.SliceInDim(key, 0, 0, 1), {});
  Value number = b.Add(b.Convert(run, ElementType::kU64), U64(b, 1));
  state = b.Add(state, b.Multiply(number, U64(b, 0x9e3779b97f4a7c15u)));
  for (uint64_t factor : {0xff51afd7ed558ccdu, 0xc4ceb9fe1a85ec53u}) {
    Value high = b.Binary(Opcode::kShiftRightLogical, state, U64(b, 33));
    state = b.Multiply(b.Xor(state, high), U64(b, factor));
  }
  return b.Concatenate({b.Reshape(state, {1}), b.SliceInDim(key, 0, 1, 2)}, 0);
}

// Values with the keys of random numbers among them, by their places, replaced by those of a run.
Values WithKeysOfRun(Builder& b, Values values, const std::vector<int64_t>& keys, Value run) {
  for (int64_t key : keys) values[key] = KeyOfRun(b, values[key], run);
  return values;
}

// The first values of a region's parameters, or results, without the state of its checks.
Values Without(const RegionChecks& checks, const Values& values) {
  return Values(values.begin(), values.end() - static_cast<int64_t>(checks.state_size()));
}
std::span<const Value> StateIn(const RegionChecks& checks, const Values& values) {
  return std::span(values).last(checks.state_size());
}
void Append(Values& values, const Values& more) {
  values.insert(values.end(), more.begin(), more.end());
}

using RegionBody = std::function<Values(Builder&, const Values&)>;

// A loop over `state` and, behind it, what the checks of its body find, which neither region sees.
// Gives the tuple of both.
Value CheckedLoop(Builder& b, const std::string& name, const Values& state,
                  const RegionBody& goes_on, const RegionBody& run) {
  RegionChecks checks(b);
  Values all = state;
  Append(all, checks.Start(b));
  const std::vector<Shape> shapes = ShapesOf(all);
  hlo::Computation* condition =
      b.Region(name + "_condition", shapes, [&](Builder& r, const Values& parameters) {
        return goes_on(r, Without(checks, parameters));
      });
  hlo::Computation* body =
      b.Region(name + "_body", shapes, [&](Builder& r, const Values& parameters) {
        return checks.Lower(r, StateIn(checks, parameters),
                            [&] { return run(r, Without(checks, parameters)); });
      });
  Value loop = b.While(all, condition, body);
  checks.Report(b, ResultsOf(b, loop, state.size(), checks.state_size()));
  return loop;
}

struct ScanAttributes {
  StepsReference body;
  std::vector<int64_t> keys = {};  // places among the body's operands
  std::vector<Shape> results;      // the body's
  int64_t carries = 0, xs = 0, length = 0;
  bool reverse = false;
  bool operator==(const ScanAttributes&) const = default;
  uint64_t Hash() const {
    return lazy::HashAttribute(std::tuple(body, keys, carries, xs, length, reverse));
  }
};

// The state of the loop: its counter, the carries, the stacked ys, what does not change: xs, the
// invariants and the constants; and what its checks found.
Values ScanLoop(Builder& b, Values operands, ScanAttributes scan) {
  const size_t carries = scan.carries, ys = scan.results.size() - carries;
  Values state = {b.ConstantScalar(ElementType::kS64, int64_t{0})};
  state.insert(state.end(), operands.begin(), operands.begin() + scan.carries);
  for (size_t i = carries; i < scan.results.size(); ++i) {
    Dimensions sizes = scan.results[i].dimensions();
    sizes.insert(sizes.begin(), scan.length);
    state.push_back(b.Zeros(Shape(scan.results[i].element_type(), sizes)));
  }
  state.insert(state.end(), operands.begin() + scan.carries, operands.end());
  if (scan.length == 0) return Values(state.begin() + 1, state.begin() + 1 + carries + ys);
  auto run = [&](Builder& r, const Values& parameters) {
    const Values values = Own(r, parameters, state);
    Value count = parameters[0], index = count;
    if (scan.reverse) {
      index = r.Subtract(r.ConstantScalar(ElementType::kS64, scan.length - 1), count);
    }
    Values inputs(parameters.begin() + 1, parameters.begin() + 1 + scan.carries);
    for (size_t i = 1 + carries + ys; i < values.size(); ++i) {
      const bool is_x = i < 1 + carries + ys + scan.xs;
      inputs.push_back(is_x ? TakeRow(r, parameters[i], index) : values[i]);
    }
    const Values results =
        LowerSteps(r, WithKeysOfRun(r, std::move(inputs), scan.keys, count), *scan.body.steps);
    Values next = parameters;
    next[0] = r.Add(count, r.ConstantScalar(ElementType::kS64, int64_t{1}));
    for (size_t i = 0; i < carries; ++i) next[1 + i] = results[i];
    for (size_t i = carries; i < results.size(); ++i) {
      next[1 + i] = PutRow(r, parameters[1 + i], results[i], index);
    }
    return next;
  };
  auto goes_on = [&](Builder& r, const Values& parameters) {
    return Values{r.Lt(parameters[0], r.ConstantScalar(ElementType::kS64, scan.length))};
  };
  const Value loop = CheckedLoop(b, "scan", state, goes_on, run);
  return ResultsOf(b, loop, 1, carries + ys);
}

struct WhileAttributes {
  StepsReference condition, body;
  std::vector<int64_t> condition_keys = {}, body_keys = {};  // places among each one's operands
  int64_t carries = 0, invariants = 0;
  bool operator==(const WhileAttributes&) const = default;
  uint64_t Hash() const {
    return lazy::HashAttribute(
        std::tuple(condition, body, condition_keys, body_keys, carries, invariants));
  }
  size_t shared() const { return carries + invariants; }
  size_t condition_constants() const { return condition.steps->operand_count - shared(); }
};

Value OneTruth(Builder& b, Value value) {
  if (!IsPred(value)) value = b.Ne(value, Like(b, value, 0));
  return b.Reshape(value, {});
}

// The state of the loop: the carries, what does not change (the invariants, the constants of the
// condition and of the body), a counter, which tells the runs' keys apart, and what the body's
// checks found. A condition has no way to tell of a check.
Values RunWhile(Builder& b, Values operands, WhileAttributes loop) {
  Values state = operands;
  state.push_back(b.ConstantScalar(ElementType::kS64, int64_t{0}));
  const size_t body_constants = loop.shared() + loop.condition_constants();
  auto goes_on = [&](Builder& r, const Values& parameters) {
    Values values = Own(r, parameters, state);
    std::copy_n(parameters.begin(), loop.carries, values.begin());
    Values inputs(values.begin(), values.begin() + static_cast<int64_t>(body_constants));
    inputs = WithKeysOfRun(r, std::move(inputs), loop.condition_keys, parameters.back());
    return Values{OneTruth(r, LowerSteps(r, inputs, *loop.condition.steps)[0])};
  };
  auto run = [&](Builder& r, const Values& parameters) {
    Values values = Own(r, parameters, state);
    std::copy_n(parameters.begin(), loop.carries, values.begin());
    Values inputs(values.begin(), values.begin() + static_cast<int64_t>(loop.shared()));
    inputs.insert(inputs.end(), values.begin() + static_cast<int64_t>(body_constants),
                  values.end() - 1);
    inputs = WithKeysOfRun(r, std::move(inputs), loop.body_keys, parameters.back());
    Values next = parameters;
    const Values carries = LowerSteps(r, inputs, *loop.body.steps);
    std::copy(carries.begin(), carries.end(), next.begin());
    next.back() = r.Add(parameters.back(), r.ConstantScalar(ElementType::kS64, int64_t{1}));
    return next;
  };
  const Value results = CheckedLoop(b, "while", state, goes_on, run);
  return ResultsOf(b, results, 0, loop.carries);
}

struct BranchAttributes {
  StepsReference on_true, on_false;
  int64_t operands = 0;
  bool operator==(const BranchAttributes&) const = default;
  uint64_t Hash() const { return lazy::HashAttribute(std::tuple(on_true, on_false, operands)); }
};

// `operands`: those of both branches, then the constants of each.
Values RunBranch(Builder& b, Value predicate, Values operands, BranchAttributes branch) {
  const std::vector<Shape> shapes = ShapesOf(operands);
  const size_t shared = branch.operands, true_count = branch.on_true.steps->operand_count;
  RegionChecks checks(b);
  auto region = [&](const char* name, const StepsReference& steps, size_t constants) {
    return b.Region(name, shapes, [&](Builder& r, const Values& parameters) {
      const Values values = Own(r, parameters, operands);
      Values inputs(values.begin(), values.begin() + static_cast<int64_t>(shared));
      const auto first = values.begin() + static_cast<int64_t>(constants);
      inputs.insert(inputs.end(), first,
                    first + static_cast<int64_t>(steps.steps->operand_count - shared));
      return checks.Lower(r, checks.Start(r), [&] { return LowerSteps(r, inputs, *steps.steps); });
    });
  };
  hlo::Computation* on_true = region("on_true", branch.on_true, shared);
  hlo::Computation* on_false = region("on_false", branch.on_false, true_count);
  Value results = b.If(OneTruth(b, predicate), operands, on_true, on_false);
  const size_t own = branch.on_true.steps->results.size();
  checks.Report(b, ResultsOf(b, results, own, checks.state_size()));
  return ResultsOf(b, results, 0, own);
}

// --- Recording

// Appends the constants of a body; notes where among the body's operands the keys are.
std::vector<int64_t> AppendConstants(const CapturedFunction& function,
                                     std::vector<lazy::Value>& operands) {
  std::vector<int64_t> keys;
  const CapturedWork& work = function.work();
  for (lazy::Value& value : work.ConstantsForCall(function.device())) {
    operands.push_back(std::move(value));
  }
  for (size_t i = 0; i < work.constants.size(); ++i) {
    if (!work.constants[i].node) {
      keys.push_back(static_cast<int64_t>(function.argument_count() + i));
    }
  }
  return keys;
}

std::vector<at::Tensor> Joined(at::TensorList a, at::TensorList b) {
  std::vector<at::Tensor> tensors = a.vec();
  tensors.insert(tensors.end(), b.begin(), b.end());
  return tensors;
}

// What a body gives must be like what it takes in the next run.
void CheckCarries(const CapturedFunction& body, const std::vector<lazy::Value>& carries) {
  TORCH_CHECK(body.results().size() >= carries.size(), "a loop carries ", carries.size(),
              " tensors, and its body gives ", body.results().size());
  for (size_t i = 0; i < carries.size(); ++i) {
    TORCH_CHECK(body.results()[i] == carries[i].shape(), "a loop's carry ", i, " is ",
                carries[i].shape().ToString(), " before a run of the body and ",
                body.results()[i].ToString(), " after it: its shape and type may not change");
  }
}

// A key of random numbers, which is none, is any.
bool IsSameConstant(const lazy::Value& a, const lazy::Value& b) {
  if (a == b) return true;
  if (!a || !b || a.node->role() != b.node->role()) return false;
  switch (a.node->role()) {
    case lazy::Node::Role::kScalar:
      return a.shape() == b.shape() && a.node->scalar() == b.node->scalar();
    case lazy::Node::Role::kIndex:
      return a.node->index() == b.node->index();
    default:
      return false;
  }
}

}  // namespace

CapturedFunction::CapturedFunction(c10::Device device, at::TensorList like,
                                   const Function& function)
    : device_(ToLazyDevice(device)) {
  const lazy::CaptureScope scope;
  std::vector<at::Tensor> placeholders;
  std::vector<lazy::Value> originals, roots;
  for (const at::Tensor& tensor : like) {
    const at::Tensor dense = at::empty(tensor.sizes(), at::TensorOptions(at::kMeta));
    placeholders.push_back(
        Placeholder(device_, tensor.scalar_type(), tensor.sizes(), dense.strides()));
    originals.push_back(ReadValue(placeholders.back()));
    arguments_.push_back(originals.back().shape());
  }
  for (const at::Tensor& result : function(placeholders)) {
    TORCH_CHECK(IsXla(result), "a result of the body of a loop or branch is on ", result.device());
    roots.push_back(ReadValue(result.resolve_conj().resolve_neg()));
    results_.push_back(roots.back().shape());
  }
  TORCH_CHECK(!scope.communicates(), "the body of a loop or branch takes part in no collectives");
  for (size_t i = 0; i < placeholders.size(); ++i) {
    TORCH_CHECK(ReadValue(placeholders[i]) == originals[i],
                "the body of a loop or branch writes into its argument ", i,
                ": give the new value as a result instead");
  }
  work_ = KeepWork(originals, roots);
}

bool CapturedFunction::DoesTheSame(const CapturedFunction& other) const {
  return device_ == other.device_ && arguments_ == other.arguments_ &&
         work_.steps == other.work_.steps &&
         std::ranges::equal(work_.constants, other.work_.constants, &IsSameConstant);
}

bool CapturedFunction::KeepsData() const {
  using Role = lazy::Node::Role;
  return std::ranges::any_of(work_.constants, [](const lazy::Value& constant) {
    return constant && constant.node->role() != Role::kScalar &&
           constant.node->role() != Role::kIndex;
  });
}

std::vector<lazy::Value> CapturedFunction::Read(at::TensorList arguments) const {
  TORCH_CHECK(arguments.size() == arguments_.size(), "the body of a loop or branch takes ",
              arguments_.size(), " tensors, not ", arguments.size());
  std::vector<lazy::Value> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    TORCH_CHECK(IsXla(arguments[i]) && Impl(arguments[i])->xla_device() == device_,
                "the tensors of a loop or branch are on xla:", device_->ordinal(), ", and not on ",
                arguments[i].device());
    values.push_back(ReadValue(arguments[i].resolve_conj().resolve_neg()));
  }
  return values;
}

std::vector<at::Tensor> Scan(const CapturedFunction& body, at::TensorList carries,
                             at::TensorList xs, at::TensorList invariants, int64_t length,
                             bool reverse) {
  std::vector<lazy::Value> operands = body.Read(Joined(Joined(carries, xs), invariants));
  CheckCarries(body, {operands.begin(), operands.begin() + static_cast<int64_t>(carries.size())});
  for (const at::Tensor& x : xs) {
    TORCH_CHECK(x.dim() > 0 && x.size(0) == length, "a scan of length ", length,
                " takes no tensor of sizes ", x.sizes());
  }
  ScanAttributes attributes{.body = body.work().steps,
                            .results = body.results(),
                            .carries = static_cast<int64_t>(carries.size()),
                            .xs = static_cast<int64_t>(xs.size()),
                            .length = length,
                            .reverse = reverse};
  attributes.keys = AppendConstants(body, operands);
  if (attributes.results.empty()) return {};
  return RecordOn<&ScanLoop>(ToTorchDevice(body.device()), operands, attributes);
}

std::vector<at::Tensor> WhileLoop(const CapturedFunction& condition, const CapturedFunction& body,
                                  at::TensorList carries, at::TensorList invariants) {
  std::vector<lazy::Value> operands = body.Read(Joined(carries, invariants));
  CheckCarries(body, {operands.begin(), operands.begin() + static_cast<int64_t>(carries.size())});
  TORCH_CHECK(body.results().size() == carries.size(), "a loop carries ", carries.size(),
              " tensors, and its body gives ", body.results().size());
  TORCH_CHECK(condition.results().size() == 1 && condition.results()[0].num_elements() == 1,
              "the condition of a loop gives one tensor of one element");
  TORCH_CHECK(condition.argument_count() == operands.size() && condition.device() == body.device(),
              "the condition and the body of a loop take the same tensors");
  if (carries.empty()) return {};
  WhileAttributes attributes{.condition = condition.work().steps,
                             .body = body.work().steps,
                             .carries = static_cast<int64_t>(carries.size()),
                             .invariants = static_cast<int64_t>(invariants.size())};
  attributes.condition_keys = AppendConstants(condition, operands);
  attributes.body_keys = AppendConstants(body, operands);
  return RecordOn<&RunWhile>(ToTorchDevice(body.device()), operands, attributes);
}

std::vector<at::Tensor> Branch(const at::Tensor& predicate, const CapturedFunction& on_true,
                               const CapturedFunction& on_false, at::TensorList operands) {
  TORCH_CHECK(predicate.numel() == 1, "a branch is chosen by one element, not by ",
              predicate.numel());
  std::vector<lazy::Value> values = on_true.Read(operands);
  TORCH_CHECK(on_false.argument_count() == values.size() && on_false.device() == on_true.device(),
              "both branches take the same tensors");
  TORCH_CHECK(on_true.results() == on_false.results(),
              "both branches give tensors of the same shapes and types");
  AppendConstants(on_true, values);
  AppendConstants(on_false, values);
  if (on_true.results().empty()) return {};
  const BranchAttributes attributes{.on_true = on_true.work().steps,
                                    .on_false = on_false.work().steps,
                                    .operands = static_cast<int64_t>(operands.size())};
  return RecordOn<&RunBranch>(ToTorchDevice(on_true.device()), predicate, values, attributes);
}

}  // namespace torch_xla

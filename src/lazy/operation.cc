#include "lazy/operation.h"

#include <cctype>
#include <string_view>
#include <unordered_set>

#include "lazy/metrics.h"
#include "lazy/op.h"
#include "process/fork.h"

namespace lazy {

ShapeRef InternShape(const hlo::Shape& shape) {
  // Node-based: addresses stay. Never destroyed: operations in static tables point into it.
  static auto* mutex = new process::Mutex;
  static auto* shapes = new std::unordered_set<hlo::Shape>;
  std::lock_guard lock(*mutex);
  return &*shapes->insert(shape).first;
}

void Operation::InferResultShapes() {
  hlo::Module scratch("infer");
  hlo::Computation* computation = scratch.AddComputation("main");
  scratch.set_entry(computation);
  hlo::Builder builder(computation);
  std::vector<hlo::Value> parameters;
  for (ShapeRef shape : operand_shapes_) parameters.push_back(builder.Parameter(*shape));
  for (hlo::Value result : Lower(builder, parameters)) {
    result_shapes_.push_back(result == nullptr ? nullptr : InternShape(result->shape()));
  }
}

const Operation* OperationTable::Insert(std::unique_ptr<Operation> operation) {
  static std::atomic<uint32_t> next_number{1};
  operation->number_ = next_number.fetch_add(1);
  if (2 * (operations_.size() + 1) > slots_.size()) {
    std::vector<const Operation*> grown(slots_.empty() ? 8 : 2 * slots_.size());
    auto place = [&](const Operation* o) {
      size_t i = o->hash() & (grown.size() - 1);
      while (grown[i] != nullptr) i = (i + 1) & (grown.size() - 1);
      grown[i] = o;
    };
    for (const auto& o : operations_) place(o.get());
    slots_ = std::move(grown);
  }
  size_t i = operation->hash() & (slots_.size() - 1);
  while (slots_[i] != nullptr) i = (i + 1) & (slots_.size() - 1);
  slots_[i] = operation.get();
  operations_.push_back(std::move(operation));
  return operations_.back().get();
}

std::atomic<int64_t>* OperationCounter(const std::string& name) { return Counter(name); }

std::string LoweringName(const char* pretty_function) {
  // "… [with auto f = torch_xla::{anonymous}::MaxPool2d; …]" or "… [f = &torch_xla::MaxPool2d]"
  std::string_view text(pretty_function);
  size_t start = text.find("f = ");
  std::string_view name = start == text.npos ? text : text.substr(start + 4);
  // Template arguments hold the name of the lowering that an adaptor wraps: Elementwise<Add,
  // …>::Lower.
  if (size_t open = name.find('<'); open != name.npos) name = name.substr(open + 1);
  size_t end = name.find_first_of(";,]>(<");
  // "(anonymous namespace)" contains a parenthesis that does not end the name.
  while (end != name.npos && name[end] == '(' && name.substr(end).starts_with("(anonymous")) {
    end = name.find_first_of(";,]>(<", end + 1);
  }
  name = name.substr(0, end);
  if (size_t colon = name.rfind("::"); colon != name.npos) name = name.substr(colon + 2);
  while (!name.empty() && (name[0] == '&' || name[0] == '*')) name.remove_prefix(1);
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    if (std::isupper(c) && i > 0 && (std::islower(name[i - 1]) || std::isdigit(name[i - 1]))) {
      out += '_';
    }
    out += static_cast<char>(std::tolower(c));
  }
  return out;
}

}  // namespace lazy

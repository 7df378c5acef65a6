#include "lazy/graph.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <unordered_map>

#include "hlo/builder.h"
#include "hlo/hash.h"
#include "lazy/data.h"
#include "lazy/graph_observer.h"
#include "lazy/location.h"
#include "lazy/op.h"
#include "lazy/resolve_marks.h"
#include "lazy/settings.h"
#include "lazy/shown_constants.h"

namespace lazy {
namespace {

// Both under the lock of syncs.
uint64_t last_cut = 0;
// The next graph is about as large as the last one.
struct Sizes {
  size_t nodes = 0, signature = 0, data_leaves = 0;
} last_sizes;

constexpr uint32_t kNone = ~uint32_t{0};

// Which of a program's parameters is a Data, by its id. A Data that is several parameters is none:
// it is donated for none of them.
class ParameterTable {
 public:
  explicit ParameterTable(std::span<Node* const> leaves)
      : slots_(std::bit_ceil(2 * leaves.size() + 1)) {
    for (uint32_t i = 0; i < leaves.size(); ++i) {
      const int64_t id = leaves[i]->data()->id();
      Slot& slot = Find(id);
      slot.parameter = slot.id == id ? kNone : i;
      slot.id = id;
    }
  }

  // kNone if it is none.
  uint32_t Of(int64_t id) { return Find(id).parameter; }
  void Forget(int64_t id) { Find(id).parameter = kNone; }

 private:
  struct Slot {
    int64_t id = 0;  // no Data has this one
    uint32_t parameter = kNone;
  };

  // Where the id is, or is to be.
  Slot& Find(int64_t id) {
    const size_t mask = slots_.size() - 1;
    size_t i = hlo::CombineHash(0, static_cast<size_t>(id)) & mask;
    while (slots_[i].id != 0 && slots_[i].id != id) i = (i + 1) & mask;
    return slots_[i];
  }

  std::vector<Slot> slots_;  // a power of two, half of them empty
};

// The innermost line that says something of the program: the framework's private files, through
// which its calls go, do not.
const hlo::SourceFrame& TellingFrame(const hlo::SourceFrame* frame) {
  const hlo::SourceFrame* telling = frame;
  while (telling->file.find("/torch/_") != std::string::npos) {
    if (telling->caller == nullptr) return *frame;
    telling = telling->caller;
  }
  return *telling;
}

hlo::Metadata MetadataOf(const Node* node) {
  hlo::Metadata metadata{SectionsOf(node) + node->operation()->kind().name, "", 0, FrameOf(node)};
  if (metadata.frame != nullptr) {
    const hlo::SourceFrame& telling = TellingFrame(metadata.frame);
    metadata.source_file = telling.file;
    metadata.source_line = telling.line;
  } else if (const SourceLocation* location =
                 ProgramsHaveLocations() ? LocationOf(node) : nullptr) {
    metadata.source_file = location->file;
    metadata.source_line = location->line;
  }
  return metadata;
}

std::string LayoutText(const hlo::Shape& shape) {
  if (shape.rank() == 0) return shape.ToString();
  std::string text;
  for (int64_t d = shape.rank(); d-- > 0;) text += (text.empty() ? "" : ",") + std::to_string(d);
  return shape.ToString() + "{" + text + "}";
}

// "f32[2,3]{1,0}", or several of them in parentheses: with the types of the numbers that they hold.
std::string ShapesText(const Operation& operation, const Downcast& downcast) {
  auto shapes = operation.result_shapes();
  std::string text;
  for (ShapeRef shape : shapes) {
    const auto held = [&] { return shape->WithElementType(downcast.Held(shape->element_type())); };
    text += (text.empty() ? "" : ", ") + (shape == nullptr ? "none" : LayoutText(held()));
  }
  return shapes.size() > 1 ? "(" + text + ")" : text;
}

// The constants that a graph's text shows for its operations, before all nodes.
class ConstantsFirst {
 public:
  explicit ConstantsFirst(std::span<Node* const> nodes) {
    const auto& shown = ShownConstants();
    for (const Node* node : nodes) {
      const auto found = shown.find(&node->operation()->kind());
      if (found == shown.end()) continue;
      const auto [type, value] = found->second(*node->operation());
      const std::string shape = hlo::Shape::Scalar(type).ToString();
      text_ += "  %" + std::to_string(count()) + " = " + shape +
               " prim::Constant(), value=" + value + ", xla_shape=" + shape + "\n";
      number_for_.emplace(node, count());
    }
  }

  size_t count() const { return number_for_.size(); }
  const std::string& Text() const { return text_; }
  std::optional<size_t> NumberFor(const Node* node) const {
    const auto found = number_for_.find(node);
    return found == number_for_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::string text_;
  std::unordered_map<const Node*, size_t> number_for_;
};

// "forward@net.py:12"
std::string LocationText(const SourceLocation& location) {
  return location.function + "@" + location.file.substr(location.file.rfind('/') + 1) + ":" +
         std::to_string(location.line);
}

uint64_t Encode(const Value& value) {
  return (static_cast<uint64_t>(value.node->position) << 24) | value.index;
}

}  // namespace

Graph::Graph(std::span<const Value> roots, std::span<const PendingCollective> collectives,
             VisitOrder order)
    : cut_(++last_cut), order_(order), precision_(ContractionPrecision()) {
  CheckNotObserved();
  constexpr size_t kMost = 1 << 16;
  nodes_.reserve(std::min(kMost, last_sizes.nodes));
  signature_.reserve(std::min(kMost, last_sizes.signature));
  data_leaves_.reserve(std::min(kMost, last_sizes.data_leaves));
  // First, so that their order in the program is that of recording, on every process the same.
  for (const PendingCollective& collective : collectives) {
    Node* node = collective.node.get();
    collectives_.push_back(node);
    if (!collective.line.file.empty()) line_of_[node] = collective.line;
    Visit(node);
  }
  for (const Value& root : roots) Visit(root.node.get());
  uint64_t precision = static_cast<uint64_t>(precision_);
  signature_.push_back(~(downcast_.signature() | (precision << 8)));  // ends the nodes
  results_.reserve(roots.size());
  next_result_.reserve(roots.size());
  result_of_root_.reserve(roots.size());
  std::vector<uint32_t> first_result(nodes_.size(), kNone);
  for (const Value& root : roots) result_of_root_.push_back(ResultOf(root, first_result));
  if (!collectives_.empty()) KeepCollectives(roots);
  last_sizes = {nodes_.size(), signature_.size() + roots.size() + 1, data_leaves_.size()};
}

uint32_t Graph::ResultOf(const Value& root, std::vector<uint32_t>& first_result) {
  uint32_t& first = first_result[root.node->position];
  for (uint32_t r = first; r != kNone; r = next_result_[r]) {
    if (results_[r].index == root.index) return r;
  }
  const auto result = static_cast<uint32_t>(results_.size());
  results_.push_back(root);
  signature_.push_back(Encode(root));
  next_result_.push_back(std::exchange(first, result));
  return result;
}

void Graph::KeepCollectives(std::span<const Value> roots) {
  std::vector<bool> is_needed(nodes_.size(), false);
  for (const Value& root : roots) is_needed[root.node->position] = true;
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (!is_needed[i]) continue;
    for (const Value& operand : nodes_[i]->operands()) is_needed[operand.node->position] = true;
  }
  // From the last, because keeping one keeps those whose results it takes.
  for (size_t c = collectives_.size(); c-- > 0;) {
    Node* collective = collectives_[c];
    if (is_needed[collective->position]) continue;
    results_.push_back({Reference<Node>(collective), 0});
    signature_.push_back(Encode(results_.back()));
    for (size_t i = collective->position + 1; i-- > 0;) {
      if (i == collective->position) is_needed[i] = true;
      if (!is_needed[i]) continue;
      for (const Value& operand : nodes_[i]->operands()) is_needed[operand.node->position] = true;
    }
  }
}

void Graph::Visit(Node* root) {
  if (root->visit == cut_) return;
  root->visit = cut_;
  root->TakeComputedOperands();
  stack_.push_back({root, 0});
  while (!stack_.empty()) {
    auto& [node, next] = stack_.back();
    auto operands = node->operands();
    if (next == operands.size()) {
      Append(node);
      stack_.pop_back();
      continue;
    }
    const size_t place =
        order_ == VisitOrder::kFirstOperandFirst ? next : operands.size() - 1 - next;
    ++next;
    Node* operand = operands[place].node.get();
    if (operand->visit == cut_) continue;
    operand->visit = cut_;
    if (operand->operands().empty()) {
      Append(operand);
    } else {
      operand->TakeComputedOperands();
      stack_.push_back({operand, 0});
    }
  }
}

void Graph::Append(Node* node) {
  node->position = static_cast<uint32_t>(nodes_.size());
  node->internal_references = 0;
  nodes_.push_back(node);
  signature_.push_back(node->operation()->number());
  for (const Value& operand : node->operands()) signature_.push_back(Encode(operand));
  if (node->role() == Node::Role::kData) data_leaves_.push_back(node);
  if (node->role() == Node::Role::kScalar) PackScalar(node);
  if (node->role() == Node::Role::kIndex) {
    index_leaves_.push_back(node);
    assignment_.push_back(node->index());
  }
}

void Graph::PackScalar(const Node* node) {
  scalar_leaves_.push_back(const_cast<Node*>(node));
  const hlo::Shape& shape = *node->shape(0);
  auto pack = std::find_if(scalar_packs_.begin(), scalar_packs_.end(),
                           [&](const ScalarPack& p) { return p.type == shape.element_type(); });
  if (pack == scalar_packs_.end()) {
    scalar_packs_.push_back({shape.element_type(), 0, {}});
    pack = scalar_packs_.end() - 1;
  }
  const std::byte* bytes = node->scalar().data();
  pack->bytes.insert(pack->bytes.end(), bytes, bytes + shape.byte_size());
  pack->count += shape.num_elements();
}

// One parameter each: two of one buffer cannot be donated. Few programs have wishes, so all but the
// first look at the leaves is for those that have.
void Graph::HeedWishes(std::vector<bool>& result_taken) {
  const auto has_wish = [](const Node* leaf) { return leaf->data()->may_be_donated(); };
  if (std::none_of(data_leaves_.begin(), data_leaves_.end(), has_wish)) return;
  std::unordered_map<const Data*, uint32_t> uses;
  for (const Node* leaf : data_leaves_) ++uses[leaf->data().get()];
  std::vector<bool> is_donated(data_leaves_.size());
  for (const Donation& donation : donations_) is_donated[donation.parameter] = true;
  for (uint32_t i = 0; i < data_leaves_.size(); ++i) {
    const Data& data = *data_leaves_[i]->data();
    if (!data.may_be_donated() || uses[&data] != 1 || is_donated[i]) continue;
    if (data.is_borrowed() || data.is_lent()) continue;
    const auto fits = [&](size_t result) {
      return !result_taken[result] && results_[result].shape_ref() == data.shape();
    };
    size_t result = 0;
    while (result < results_.size() && !fits(result)) ++result;
    if (result == results_.size()) {
      given_up_.push_back(i);
      continue;
    }
    result_taken[result] = true;
    donations_.push_back({static_cast<uint32_t>(result), i});
  }
}

void Graph::PlanDonation(std::span<const int64_t> replaced, uint32_t holders_per_root,
                         bool heeds_wishes) {
  ParameterTable parameters(data_leaves_);
  for (size_t r = 0; r < result_of_root_.size(); ++r) {
    results_[result_of_root_[r]].node->internal_references += holders_per_root;
  }
  for (Node* collective : collectives_) ++collective->internal_references;
  // `results_` itself holds one reference to each.
  for (const Value& result : results_) ++result.node->internal_references;
  // A node dies with the graph if all references to it come from roots and from nodes that die.
  for (size_t i = nodes_.size(); i-- > 0;) {
    Node* node = nodes_[i];
    if (node->use_count() != node->internal_references) {
      node->internal_references = 0;
      continue;
    }
    for (const Value& operand : node->operands()) ++operand.node->internal_references;
  }
  std::vector<bool> result_taken(results_.size(), false);
  for (size_t r = 0; r < replaced.size(); ++r) {
    const uint32_t result = result_of_root_[r];
    if (replaced[r] == 0 || result_taken[result]) continue;
    const uint32_t parameter = parameters.Of(replaced[r]);
    if (parameter == kNone) continue;
    const Node* leaf = data_leaves_[parameter];
    if (leaf->internal_references == 0 || leaf->data()->use_count() != 1) continue;
    if (leaf->shape(0) != results_[result].shape_ref() || leaf->data()->is_borrowed()) continue;
    result_taken[result] = true;
    donations_.push_back({result, parameter});
    parameters.Forget(replaced[r]);
  }
  if (heeds_wishes) HeedWishes(result_taken);
  signature_.push_back(~uint64_t{0});  // ends the results
  for (const Donation& donation : donations_) {
    signature_.push_back((uint64_t{donation.result} << 32) | donation.parameter);
  }
}

ScalarPack Graph::IndexPack(const std::vector<bool>& varies) const {
  ScalarPack pack{hlo::ElementType::kS64, 0, {}};
  for (size_t i = 0; i < varies.size(); ++i) {
    if (!varies[i]) continue;
    const auto* bytes = reinterpret_cast<const std::byte*>(&assignment_[i]);
    pack.bytes.insert(pack.bytes.end(), bytes, bytes + sizeof(int64_t));
    ++pack.count;
  }
  return pack;
}

uint64_t Graph::hash() const {
  return hlo::CombineHash(structure_hash(), HashAttribute(assignment_));
}

uint64_t Graph::structure_hash() const {
  return hlo::HashBytes(std::as_bytes(std::span(signature_)));
}

void Graph::LowerScalars(hlo::Builder& builder,
                         std::vector<std::vector<hlo::Value>>& values) const {
  std::map<hlo::ElementType, std::pair<hlo::Value, int64_t>> packs;  // parameter, next element
  for (const ScalarPack& pack : scalar_packs_) {
    packs[pack.type] = {builder.Parameter(hlo::Shape(pack.type, {pack.count})), 0};
  }
  for (const Node* leaf : scalar_leaves_) {
    const hlo::Shape& shape = *leaf->shape(0);
    auto& [parameter, next] = packs[shape.element_type()];
    hlo::Value slice = builder.SliceInDim(parameter, 0, next, next + shape.num_elements());
    next += shape.num_elements();
    values[leaf->position] = {builder.Reshape(slice, shape.dimensions())};
  }
}

void Graph::LowerIndices(hlo::Builder& builder, const std::vector<bool>& varies,
                         std::vector<std::vector<hlo::Value>>& values) const {
  const int64_t count = std::count(varies.begin(), varies.end(), true);
  hlo::Value pack =
      count == 0 ? nullptr : builder.Parameter(hlo::Shape(hlo::ElementType::kS64, {count}));
  int64_t next = 0;
  for (size_t i = 0; i < index_leaves_.size(); ++i) {
    hlo::Value index;
    if (!varies.empty() && varies[i]) {
      index = builder.Reshape(builder.SliceInDim(pack, 0, next, next + 1), {});
      ++next;
    } else {
      index = builder.ConstantScalar(hlo::ElementType::kS64, assignment_[i]);
    }
    values[index_leaves_[i]->position] = {index};
  }
}

std::unique_ptr<hlo::Module> Graph::Lower(const std::string& name, const std::vector<bool>& varies,
                                          ValueChecks* checks) const {
  auto module = LowerWithMarks(name, varies, checks);
  ResolveMarks(*module);
  return module;
}

std::unique_ptr<hlo::Module> Graph::LowerWithMarks(const std::string& name,
                                                   const std::vector<bool>& varies,
                                                   ValueChecks* checks) const {
  auto module = std::make_unique<hlo::Module>(name);
  hlo::Computation* entry = module->AddComputation("main");
  module->set_entry(entry);
  hlo::Builder builder(entry);
  builder.set_precision(precision_);
  std::vector<std::vector<hlo::Value>> values(nodes_.size());
  for (const Node* leaf : data_leaves_) {
    values[leaf->position] = {downcast_.Round(builder, builder.Parameter(*leaf->shape(0)))};
  }
  LowerScalars(builder, values);
  LowerIndices(builder, varies, values);
  std::optional<CheckRecorder> recorder;
  if (checks != nullptr) recorder.emplace(entry, checks);
  std::vector<hlo::Value> operands;
  for (const Node* node : nodes_) {
    if (node->role() != Node::Role::kOperation) continue;
    if (recorder) recorder->set_node(node);
    operands.clear();
    for (const Value& operand : node->operands()) {
      operands.push_back(values[operand.node->position][operand.index]);
    }
    hlo::Metadata metadata = MetadataOf(node);
    if (auto line = line_of_.find(node); line != line_of_.end()) {
      metadata.source_file = line->second.file;
      metadata.source_line = line->second.number;
    }
    builder.set_metadata(std::move(metadata));
    values[node->position] = node->operation()->Lower(builder, operands);
    for (hlo::Value& value : values[node->position]) value = downcast_.Round(builder, value);
  }
  std::vector<hlo::Value> results;
  for (const Value& result : results_) {
    results.push_back(values[result.node->position][result.index]);
  }
  if (recorder) {
    builder.set_metadata(hlo::Metadata{"xla::check_values", "", 0});
    if (hlo::Value numbers = recorder->Numbers(builder)) results.push_back(numbers);
  }
  entry->set_results(results);
  for (const Donation& donation : donations_) {
    module->input_output_aliases.push_back({donation.result, donation.parameter, false});
  }
  entry->RemoveDeadInstructions();
  return module;
}

std::string Graph::ToText() const {
  std::string out = "IR {\n";
  std::unordered_map<const Node*, std::vector<uint32_t>> root_numbers;
  for (uint32_t r = 0; r < results_.size(); ++r) {
    root_numbers[results_[r].node.get()].push_back(r);
  }
  std::map<std::string, int> scopes;
  const ConstantsFirst constants(nodes_);
  out += constants.Text();
  const auto number = [&](const Node* node) {
    return "%" + std::to_string(constants.count() + node->position);
  };
  for (const Node* node : nodes_) {
    const std::string& name = node->operation()->kind().name;
    const std::string shapes = ShapesText(*node->operation(), downcast_);
    out += "  " + number(node) + " = " + shapes + " " + name + "(";
    bool first = true;
    for (const Value& operand : node->operands()) {
      out += (first ? "" : ", ") + number(operand.node.get());
      if (operand.index != 0) out += "." + std::to_string(operand.index);
      first = false;
    }
    if (const auto constant = constants.NumberFor(node)) {
      out += (first ? "%" : ", %") + std::to_string(*constant);
    }
    out += ")";
    std::string attributes = node->AttributesText();
    if (!attributes.empty()) out += ", attributes=(" + attributes + ")";
    const SourceLocation* location = LocationOf(node);
    const std::string scope = SectionsOf(node) + name;
    if (location != nullptr || scope != name) {
      out += ", scope=" + scope + "." + std::to_string(++scopes[scope]);
    }
    if (location != nullptr) out += ", location=" + LocationText(*location);
    out += ", xla_shape=" + shapes;
    for (uint32_t r : root_numbers[node]) out += ", ROOT=" + std::to_string(r);
    out += "\n";
  }
  return out + "}\n";
}

std::string Graph::ToDot() const {
  std::string out = "digraph G {\n";
  for (const Node* node : nodes_) {
    std::string id = "node" + std::to_string(node->position);
    ShapeRef shape = node->shape(0);
    out += "  " + id + " [label=\"" + node->operation()->kind().name + "\\n" +
           (shape == nullptr ? "none" : shape->ToString()) + "\"];\n";
    for (const Value& operand : node->operands()) {
      out += "  node" + std::to_string(operand.node->position) + " -> " + id + ";\n";
    }
  }
  return out + "}\n";
}

}  // namespace lazy

// Graph: the recorded work that some values need, in an order in which operands come first: its
// structure, as a signature, and the assignment of its indices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/module.h"
#include "lazy/collective.h"
#include "lazy/downcast.h"
#include "lazy/node.h"
#include "lazy/specialization.h"
#include "lazy/value_check.h"

namespace lazy {

class Data;

// The numbers of a graph travel to the device packed: one rank-1 parameter for each element type.
struct ScalarPack {
  hlo::ElementType type;
  int64_t count = 0;
  std::vector<std::byte> bytes;
};

// In which order a node's operands are visited, and with them nodes and parameters numbered.
// PyTorch/XLA visits the last operand first, and so do graphs that people and other programs read.
enum class VisitOrder : uint8_t { kFirstOperandFirst, kLastOperandFirst };

// One of the program's results takes over the buffer of a parameter that nobody else holds.
struct Donation {
  uint32_t result = 0;
  uint32_t parameter = 0;
  bool operator==(const Donation&) const = default;
};

// A cut holds pointers into the nodes of `roots`, which the caller keeps alive, and uses their
// scratch fields: only one cut exists at a time (sync_mutex.h).
class Graph {
 public:
  // `collectives` are operations that run whether or not a root needs them, before everything that
  // does not need to run before them and in their order. Each is held once by the caller.
  // Throws hlo::Error(kFailedPrecondition) inside an observer of graphs (graph_observer.h).
  explicit Graph(std::span<const Value> roots, std::span<const PendingCollective> collectives = {},
                 VisitOrder order = VisitOrder::kFirstOperandFirst);
  // For people and other programs.
  static Graph ToShow(std::span<const Value> roots) {
    return Graph(roots, {}, VisitOrder::kLastOperandFirst);
  }
  Graph(const Graph&) = delete;

  // All nodes, operands before users.
  const std::vector<Node*>& nodes() const { return nodes_; }
  // Data leaves in the order of the program's parameters; the packs of scalars follow them, and
  // then that of the indices that vary.
  const std::vector<Node*>& data_leaves() const { return data_leaves_; }
  const std::vector<ScalarPack>& scalar_packs() const { return scalar_packs_; }
  // The distinct values among the roots, the program's results (those of unwanted collectives
  // follow); and which of them each root is.
  const std::vector<Value>& results() const { return results_; }
  const std::vector<uint32_t>& result_of_root() const { return result_of_root_; }
  // Whether it is one of the nodes; not after a later cut.
  bool Contains(const Node& node) const { return node.visit == cut_; }
  size_t operation_count() const {
    return nodes_.size() - data_leaves_.size() - scalar_leaves_.size() - index_leaves_.size();
  }

  // Whether values keep the types that were recorded (downcast.h).
  bool rounds_nothing() const { return downcast_.signature() == 0; }

  // Decides which parameters are donated. `replaced[r]` is the id of the Data whose place root r
  // takes (0: none); `holders[r]` how many references to root r's node die with the graph. Those
  // that the user wishes to donate are so too, if `heeds_wishes`.
  void PlanDonation(std::span<const int64_t> replaced, uint32_t holders_per_root,
                    bool heeds_wishes = true);
  const std::vector<Donation>& donations() const { return donations_; }
  // Parameters that are given up by wish, with no result to take their memory.
  const std::vector<uint32_t>& given_up() const { return given_up_; }

  // Everything that the program depends on, but for the values of indices.
  const std::vector<uint64_t>& signature() const { return signature_; }
  uint64_t structure_hash() const;
  const Assignment& assignment() const { return assignment_; }
  // Of both.
  uint64_t hash() const;

  // The indices that such a program takes; `count` is 0 if there are none.
  ScalarPack IndexPack(const std::vector<bool>& varies) const;

  // The program, in which the indices that do not vary (`varies` as in Specialization) are
  // constants. Parameters: data leaves, then scalar packs, then the pack of indices. Contractions
  // ask for the precision that was set when the graph was cut, where their lowering names none.
  // With `checks` the program checks values: their numbers are one more result, the last, if there
  // are any.
  std::unique_ptr<hlo::Module> Lower(const std::string& name, const std::vector<bool>& varies = {},
                                     ValueChecks* checks = nullptr) const;
  // The same, in which the user's marks (hlo/marks.h) have not yet become what they say.
  std::unique_ptr<hlo::Module> LowerWithMarks(const std::string& name,
                                              const std::vector<bool>& varies = {},
                                              ValueChecks* checks = nullptr) const;
  // "IR {\n  %0 = f32[2] xla::device_data() …": for people.
  std::string ToText() const;
  std::string ToDot() const;

 private:
  void Visit(Node* root);
  // The root as one of the results, which it becomes if it is none yet.
  uint32_t ResultOf(const Value& root, std::vector<uint32_t>& first_result);
  // Makes the collectives that no root needs results of the program.
  void KeepCollectives(std::span<const Value> roots);
  void Append(Node* node);
  void PackScalar(const Node* node);
  void HeedWishes(std::vector<bool>& result_taken);
  // The values of scalar and index leaves, by position.
  void LowerScalars(hlo::Builder& builder, std::vector<std::vector<hlo::Value>>& values) const;
  void LowerIndices(hlo::Builder& builder, const std::vector<bool>& varies,
                    std::vector<std::vector<hlo::Value>>& values) const;

  uint64_t cut_;
  const VisitOrder order_;
  const hlo::Precision precision_;
  Downcast downcast_ = Downcast::FromEnvironment();
  std::vector<Node*> nodes_, data_leaves_, scalar_leaves_, index_leaves_;
  std::vector<Node*> collectives_;
  std::unordered_map<const Node*, SourceLine> line_of_;  // of collectives, for people
  std::vector<Value> results_;
  std::vector<uint32_t> result_of_root_;
  std::vector<uint32_t> next_result_;  // of the same node; kNone after the last
  std::vector<ScalarPack> scalar_packs_;
  std::vector<Donation> donations_;
  std::vector<uint32_t> given_up_;
  std::vector<uint64_t> signature_;
  Assignment assignment_;
  std::vector<std::pair<Node*, uint32_t>> stack_;
};

}  // namespace lazy

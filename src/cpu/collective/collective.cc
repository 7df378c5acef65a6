#include "cpu/collective/collective.h"

#include "hlo/hash.h"

namespace cpu {
namespace {

const char* NameOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
    case CollectiveKind::kPermute:
      return "collective_permute";
    case CollectiveKind::kBroadcast:
      return "collective_broadcast";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  return "collective";
}

const char* NameOf(Reduction reduction) {
  static const char* const kNames[] = {"sum", "product", "min", "max", "and", "or", "xor"};
  return kNames[static_cast<int>(reduction)];
}

bool Reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
}

std::string Join(const std::vector<int64_t>& numbers, const char* separator) {
  std::string text;
  for (int64_t number : numbers) {
    if (!text.empty()) text += separator;
    text += std::to_string(number);
  }
  return text;
}

// Over numbers and lists of them.
class Hash {
 public:
  void Add(uint64_t number) { value_ = hlo::CombineHash(value_, number); }
  void Add(const std::vector<int64_t>& numbers) {
    Add(numbers.size());
    for (int64_t number : numbers) Add(static_cast<uint64_t>(number));
  }
  void Add(const std::vector<std::vector<int64_t>>& lists) {
    Add(lists.size());
    for (const auto& list : lists) Add(list);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

}  // namespace

std::string Collective::ToString() const {
  constexpr size_t kMostOperands = 4;
  std::string text = NameOf(kind);
  if (Reduces(kind)) text += std::string("(") + NameOf(reduction) + ")";
  for (size_t i = 0; i < operands.size() && i < kMostOperands; ++i) {
    text += (i ? ", " : " of ") + operands[i].ToString();
  }
  if (operands.size() > kMostOperands) {
    text += " and " + std::to_string(operands.size() - kMostOperands) + " more";
  }
  if (kind == CollectiveKind::kPermute) {
    text += " along";
    for (const auto& pair : pairs) text += " " + Join(pair, "->");
  } else if (groups.empty()) {
    text += " over all ranks";
  } else {
    text += " over ranks";
    for (const auto& group : groups) text += " {" + Join(group, ", ") + "}";
  }
  if (!source.empty()) text += " (" + source + ")";
  return text;
}

uint64_t Collective::Signature() const {
  Hash hash;
  hash.Add(static_cast<uint64_t>(kind));
  hash.Add(static_cast<uint64_t>(reduction));
  for (const hlo::Shape& shape : operands) {
    hash.Add(static_cast<uint64_t>(shape.element_type()));
    hash.Add(shape.dimensions());
  }
  hash.Add(static_cast<uint64_t>(dimension));
  hash.Add(static_cast<uint64_t>(split_dimension));
  hash.Add(static_cast<uint64_t>(concat_dimension));
  hash.Add(groups);
  hash.Add(pairs);
  return hash.value();
}

}  // namespace cpu

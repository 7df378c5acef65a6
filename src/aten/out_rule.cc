#include "aten/out_rule.h"

#include <ATen/MemoryOverlap.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "aten/tensor.h"

namespace torch_xla {
namespace {

using Error = OutRule::Error;
using Expanded = OutRule::Expanded;

// Structured operators, and iterators without promotion, take targets of the result's type only.
constexpr OutRule kSame{OutType::kSame};
constexpr OutRule kSameApart{OutType::kSame, true};
constexpr OutRule kTruth{OutType::kTruth};
constexpr OutRule kDeviation{OutType::kCastableToReal, false, Error::kNotImplemented};
constexpr OutRule kAsked{OutType::kAsked};
constexpr OutRule kApart{OutType::kCastable, true};
constexpr OutRule kExpanded{OutType::kCastable, false, Error::kRuntime, Expanded::kTaken};
constexpr OutRule kDeprecated{OutType::kCastable, false, Error::kRuntime, Expanded::kDeprecated};
constexpr OutRule kApartDeprecated{OutType::kCastable, true, Error::kRuntime,
                                   Expanded::kDeprecated};

using TypeWords = std::string (*)(at::ScalarType, at::ScalarType);
OutRule InWords(OutRule rule, TypeWords words) {
  rule.words = words;
  return rule;
}
OutRule SameInWords(TypeWords words) { return InWords(kSame, words); }

std::string WordsOfExtremes(at::ScalarType result, at::ScalarType target) {
  return c10::str("Expected the dtype for input and out to match, but got ", result,
                  " for input's dtype and ", target, " for out's dtype.");
}

constexpr char kCholesky[] = "cholesky", kCholeskyInverse[] = "cholesky_inverse";
template <const char* name>
std::string WordsOfCastable(at::ScalarType result, at::ScalarType target) {
  return c10::str(name, ": Expected result to be safely castable from ", result,
                  " dtype, but got result with dtype ", target);
}

std::string WordsOfComplex(at::ScalarType result, at::ScalarType target) {
  return c10::str("Expected object of scalar type ", result, " but got scalar type ", target,
                  " for argument 'out'");
}

std::string WordsOfMultinomial(at::ScalarType result, at::ScalarType target) {
  return c10::str("multinomial expects ", result, " tensor out, got: ", target);
}

const std::unordered_map<std::string_view, OutRule>& OutRules() {
  static const auto* rules = new std::unordered_map<std::string_view, OutRule>{
      // One operand, no promotion.
      {"abs", kSame},
      {"bitwise_not", kSame},
      {"ceil", kSame},
      {"conj_physical", kSame},
      {"floor", kSame},
      {"frac", kSame},
      {"gelu", kSame},
      {"hardshrink", kSame},
      {"log_sigmoid_forward", kSame},
      {"nan_to_num", kSame},
      {"neg", kSame},
      {"round", kSame},
      {"sgn", kSame},
      {"sign", kSame},
      {"softplus", kSame},
      {"softshrink", kSame},
      {"trunc", kSame},
      // Predicates.
      {"all", kTruth},
      {"any", kTruth},
      {"isin", kSame},
      {"isneginf", kSame},
      {"isposinf", kSame},
      {"signbit", kSame},
      // Several operands of one type.
      {"complex", SameInWords(&WordsOfComplex)},
      {"frexp", kSame},
      {"heaviside", kSame},
      {"lerp.Tensor_out", kSame},
      {"polar", SameInWords(&WordsOfComplex)},
      {"where", kSame},
      // Matrices.
      {"addbmm", kSame},
      {"addmm", kSame},
      {"addmv", kSame},
      {"baddbmm", kSame},
      {"bmm", kSame},
      {"linalg_cross", kSame},
      {"linalg_cholesky_ex", kSame},
      {"linalg_inv_ex", kSame},
      {"linalg_ldl_factor_ex", kSame},
      {"cholesky", InWords({}, &WordsOfCastable<kCholesky>)},
      {"cholesky_inverse", InWords({}, &WordsOfCastable<kCholeskyInverse>)},
      {"linalg_ldl_solve", kSame},
      {"linalg_lu", kSame},
      {"linalg_lu_factor_ex", kSame},
      {"linalg_lu_solve", kSame},
      {"linalg_qr", kSame},
      {"linalg_solve_triangular", kSame},
      {"linalg_vector_norm", kSame},
      {"_linalg_det", kSame},
      {"_linalg_eigh", kSame},
      {"_linalg_slogdet", kSame},
      {"_linalg_solve_ex", kSame},
      {"_linalg_svd", kSame},
      {"lu_unpack", kSame},
      {"mm", kSame},
      {"mv", kSame},
      {"ormqr", kSame},
      {"triangular_solve", kSame},
      {"tril", kSame},
      {"triu", kSame},
      // Reductions, sorts and searches.
      {"_log_softmax", kSame},
      {"_softmax", kSame},
      {"amax", SameInWords(&WordsOfExtremes)},
      {"amin", SameInWords(&WordsOfExtremes)},
      {"aminmax", kSame},
      {"argmax", kSame},
      {"argmin", kSame},
      {"avg_pool2d", kSame},
      {"avg_pool3d", kSame},
      {"bucketize", kSame},
      {"cummax", kSame},
      {"cummin", kSame},
      {"cumprod", kAsked},
      {"cumsum", kAsked},
      {"hash_tensor", kSame},
      {"histc", kSame},
      {"histogram", kSame},
      {"kthvalue", kSameApart},
      {"max.dim_max", kSame},
      {"min.dim_min", kSame},
      {"mode", kSame},
      {"nansum", kAsked},
      {"native_batch_norm", kSame},
      {"_native_batch_norm_legit", kSame},
      {"mean", kAsked},
      {"norm", kSame},
      {"prod", kAsked},
      {"renorm", kSame},
      {"searchsorted", kSame},
      {"sort", kSame},
      {"std", kDeviation},
      {"sum", kAsked},
      {"topk", kSame},
      {"var", kDeviation},
      // Places.
      {"cat", {OutType::kCastable, true, Error::kType}},
      {"gather", kSameApart},
      {"index_add", kSame},
      {"index_copy", kSame},
      {"index_reduce", kSame},
      {"index_select", kSameApart},
      {"masked_select", kSameApart},
      {"narrow_copy", kSame},
      {"nonzero", kSame},
      {"scatter", kSame},
      {"scatter_add", kSame},
      {"scatter_reduce", kSame},
      {"take", kSameApart},
      // Random numbers.
      {"bernoulli", {OutType::kReal, false, Error::kNotImplemented}},
      {"multinomial", SameInWords(&WordsOfMultinomial)},
      {"normal", {OutType::kCastable, false, Error::kNotImplemented}},
      // In place, what is read must not be written meanwhile.
      {"index_add_", kApart},
      {"index_copy_", kApart},
      {"index_fill_", kApartDeprecated},
      {"index_put_", kApart},
      {"index_reduce_", kApart},
      {"put_", kApart},
      {"scatter_", kApart},
      {"scatter_add_", kApart},
      {"scatter_reduce_", kApart},
      {"masked_fill_", kDeprecated},
      {"threshold_", kExpanded},
      {"tril_", kExpanded},
      {"triu_", kExpanded},
  };
  return *rules;
}

bool IsAllowed(OutType rule, at::ScalarType result, const at::Tensor& target, bool reads_nothing) {
  at::ScalarType type = target.scalar_type();
  bool is_complex = at::isComplexType(type);
  switch (rule) {
    case OutType::kCastable:
      return c10::canCast(result, type);
    case OutType::kCastableToReal:
      return !is_complex || target.numel() == 1 || reads_nothing;
    case OutType::kTruth:
      return type == at::kBool || type == at::kByte;
    case OutType::kReal:
      return !is_complex || reads_nothing;
    default:
      return result == type;
  }
}

std::string_view WithoutNamespace(std::string_view name) {
  constexpr std::string_view kNamespace = "aten::";
  if (name.substr(0, kNamespace.size()) == kNamespace) name.remove_prefix(kNamespace.size());
  return name;
}

// Where `count` elements of a dense tensor lie in its storage.
using Bytes = std::pair<int64_t, int64_t>;
Bytes BytesOf(const at::Tensor& x, int64_t count) {
  const auto size = static_cast<int64_t>(x.element_size());
  return {x.storage_offset() * size, (x.storage_offset() + count) * size};
}
bool AreApart(const Bytes& a, const Bytes& b) { return a.second <= b.first || b.second <= a.first; }

constexpr const char* kSharesMemory =
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
    "single memory location. Please clone() the tensor before performing the operation.";

}  // namespace

OutRule OutRuleOf(const std::string& name, const std::string& overload) {
  const std::string_view base = WithoutNamespace(name);
  std::string full = std::string(base) + "." + overload;
  auto it = OutRules().find(full);
  if (it == OutRules().end()) it = OutRules().find(base);
  return it == OutRules().end() ? OutRule() : it->second;
}

void CheckExpanded(const OutRule& rule, const std::string& name, const at::Tensor& target) {
  if (rule.expanded == Expanded::kTaken ||
      at::has_internal_overlap(target) != at::MemOverlap::Yes) {
    return;
  }
  if (rule.expanded == Expanded::kRefused) at::assert_no_internal_overlap(target);
  TORCH_WARN("Use of ", WithoutNamespace(name),
             " on expanded tensors is deprecated. Please clone() the tensor before performing this "
             "operation. This also applies to advanced indexing e.g. tensor[mask] = scalar");
}

void CheckOutType(const OutRule& rule, at::ScalarType result, const at::Tensor& target,
                  bool reads_nothing) {
  at::ScalarType type = target.scalar_type();
  if (rule.type == OutType::kCastableToReal) CheckOutType(OutRule(), result, target, false);
  if (IsAllowed(rule.type, result, target, reads_nothing)) return;
  std::string message =
      rule.type == OutType::kCastable
          ? c10::str("result type ", result, " can't be cast to the desired output type ", type)
          : c10::str("Expected out tensor to have dtype ", c10::scalarTypeToTypeMeta(result),
                     ", but got ", c10::scalarTypeToTypeMeta(type), " instead");
  if (rule.words != nullptr) message = rule.words(result, type);
  TORCH_CHECK_TYPE(rule.error != Error::kType, message);
  TORCH_CHECK_NOT_IMPLEMENTED(rule.error != Error::kNotImplemented, message);
  TORCH_CHECK(false, message);
}

void CheckNoPartialOverlap(const at::Tensor& target, const at::Tensor& input) {
  if (!IsXla(target) || !IsXla(input) || target.is_same(input)) return;
  if (Impl(target)->xla_storage() != Impl(input)->xla_storage()) return;
  if (target.numel() == 0 || input.numel() == 0) return;
  // Of tensors with holes eager cannot tell either.
  if (!target.is_non_overlapping_and_dense() || !input.is_non_overlapping_and_dense()) return;
  const Bytes written = BytesOf(target, target.numel()), read = BytesOf(input, input.numel());
  const bool is_all = written == read && target.strides() == input.strides();
  TORCH_CHECK(is_all || AreApart(written, read), kSharesMemory);
}

void CheckApart(const at::Tensor& target, const at::Tensor& input, int64_t elements) {
  if (!IsXla(target) || !IsXla(input)) return;
  if (Impl(target)->xla_storage() != Impl(input)->xla_storage()) return;
  bool is_same = target.is_same(input);
  if (!is_same && (target.numel() == 0 || input.numel() == 0)) return;
  // Of tensors with holes eager cannot tell either.
  if (!target.is_non_overlapping_and_dense() || !input.is_non_overlapping_and_dense()) return;
  const Bytes written = BytesOf(target, std::max(target.numel(), elements));
  TORCH_CHECK(!is_same && AreApart(written, BytesOf(input, input.numel())), kSharesMemory);
}

}  // namespace torch_xla

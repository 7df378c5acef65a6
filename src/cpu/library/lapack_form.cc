#include "cpu/library/lapack_form.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hlo/error.h"

namespace cpu {
namespace {

using hlo::ElementType;

// One form of a routine; a routine whose shapes follow from an attribute has several.
struct Form {
  std::string_view routines;
  // Attributes and the letters that each may have; truth values are y and n. A call that lacks one
  // has the first letter of the first form.
  std::string_view attributes;
  // Operands, results, and what holds of the sizes. T is the routine's type, R its real one, C its
  // complex one, I s32; P is T, or two of R, real and imaginary parts. The batch is left out. The
  // sizes k, x and e are min(m, n), max(m, n) and max(n - 1, 0).
  std::string_view shapes;
};

constexpr Form kForms[] = {
    {"geqrf", "", "T[m,n] -> T[m,n] T[k]"},
    {"geqp3", "", "T[m,n] I[n] -> T[m,n] I[n] T[k]"},
    {"orgqr ungqr", "", "T[m,n] T[q] -> T[m,n] ; q<=n n<=m"},
    {"ormqr unmqr", "left:y transpose:yn", "T[m,c] T[q] T[m,n] -> T[m,n] ; q<=m q<=c"},
    {"ormqr unmqr", "left:n transpose:yn", "T[n,c] T[q] T[m,n] -> T[m,n] ; q<=n q<=c"},
    {"potrf", "uplo:LU", "T[n,n] -> T[n,n] I[]"},
    {"getrf", "", "T[m,n] -> T[m,n] I[k] I[]"},
    {"gesdd gesvd", "mode:A", "T[m,n] -> T[m,n] R[k] T[m,m] T[n,n] I[]"},
    {"gesdd gesvd", "mode:S", "T[m,n] -> T[m,n] R[k] T[m,k] T[k,n] I[]"},
    {"gesdd gesvd", "mode:N", "T[m,n] -> T[m,n] R[k] T[m,u] T[v,n] I[]"},
    {"syevd heevd", "mode:VN uplo:LU", "T[n,n] -> T[n,n] R[n] I[]"},
    {"geev", "compute_left:VN compute_right:VN", "T[n,n] -> P[n] C[n,n] C[n,n] I[]"},
    {"gees", "mode:VN sort:N", "T[n,n] -> T[n,n] T[n,n] P[n] I[] I[]"},
    {"gehrd", "", "T[n,n] -> T[n,n] T[e] I[]"},
    {"sytrd hetrd", "uplo:LU", "T[n,n] -> T[n,n] R[n] R[e] T[e] I[]"},
    // An off-diagonal may have n elements.
    {"gtsv", "", "T[d] T[n] T[d] T[n,r] -> T[d] T[n] T[d] T[n,r] I[] ; e<=d d<=n"},
    {"sytrf hetrf", "uplo:LU", "T[n,n] -> T[n,n] I[n] I[]"},
    {"sytrs hetrs", "uplo:LU", "T[n,n] I[n] T[n,r] -> T[n,r]"},
    {"gels gelsy gelsd gelss", "", "T[m,n] T[x,r] -> T[x,r] I[] R[k] I[]"},
    {"trsm", "side:L uplo:LU trans_x:NTC diag:NU", "T[m,m] T[m,n] -> T[m,n]"},
    {"trsm", "side:R uplo:LU trans_x:NTC diag:NU", "T[n,n] T[m,n] -> T[m,n]"},
};

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// -1 for what is no letter.
int64_t LetterOf(const hlo::AttributeValue& attribute) {
  if (const bool* flag = std::get_if<bool>(&attribute.value)) return *flag ? 'y' : 'n';
  const auto* number = std::get_if<int64_t>(&attribute.value);
  return number == nullptr ? -1 : *number;
}

// Whether a form has the routine and the call's attributes.
bool Serves(const Form& form, std::string_view routine, const hlo::AttributeDictionary& given) {
  const auto routines = Split(form.routines, ' ');
  if (std::ranges::find(routines, routine) == routines.end()) return false;
  return std::ranges::all_of(Split(form.attributes, ' '), [&](std::string_view attribute) {
    const auto parts = Split(attribute, ':');
    const auto found = given.find(std::string(parts[0]));
    return found == given.end() ||
           std::ranges::any_of(parts[1], [&](char c) { return LetterOf(found->second) == c; });
  });
}

class FormCheck {
 public:
  FormCheck(const hlo::Instruction& call, const Form& form)
      : call_(call), form_(form), type_(call.operand(0)->element_type()) {}

  void Run() {
    FindBatch();
    const auto parts = Split(form_.shapes, ' ');
    const auto arrow = std::ranges::find(parts, "->"), end = std::ranges::find(parts, ";");
    std::vector<hlo::Shape> operands;
    for (const hlo::Instruction* operand : call_.operands()) operands.push_back(operand->shape());
    Match("operand", {parts.begin(), arrow}, operands);
    Match("result", {arrow + 1, end},
          call_.shape().is_tuple() ? call_.shape().tuple_shapes() : std::vector{call_.shape()});
    for (auto part = end; part != parts.end(); ++part) {
      if (*part != ";" && *Size(part->front()) > *Size(part->back())) Refuse(std::string(*part));
    }
  }

 private:
  // What precedes the dimensions of the first operand's form.
  void FindBatch() {
    const hlo::Dimensions& dimensions = call_.operand(0)->dimensions();
    const size_t own = SizesOf(Split(form_.shapes, ' ').front()).size();
    if (dimensions.size() < own) Refuse(Name("operand", 0, call_.operand(0)->shape()));
    batch_.assign(dimensions.begin(), dimensions.end() - static_cast<int64_t>(own));
  }

  void Match(const char* what, const std::vector<std::string_view>& forms,
             const std::vector<hlo::Shape>& shapes) {
    size_t next = 0;
    for (const std::string_view form : forms) {
      const bool is_pair = form.front() == 'P' && !hlo::IsComplex(type_);
      for (int i = 0; i < (is_pair ? 2 : 1); ++i, ++next) {
        if (next == shapes.size()) Refuse(std::string("fewer ") + what + "s");
        if (!Matches(form, shapes[next])) Refuse(Name(what, next, shapes[next]));
      }
    }
    if (next != shapes.size()) Refuse(std::string("more ") + what + "s");
  }

  bool Matches(std::string_view form, const hlo::Shape& shape) {
    const std::string sizes = SizesOf(form);
    if (shape.element_type() != TypeOf(form.front()) ||
        shape.rank() != static_cast<int64_t>(batch_.size() + sizes.size()) ||
        !std::equal(batch_.begin(), batch_.end(), shape.dimensions().begin())) {
      return false;
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int64_t size = shape.dimensions()[batch_.size() + i];
      if (size > std::numeric_limits<int>::max()) {
        throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                         "linear algebra: a matrix of " + shape.ToString());
      }
      const std::optional<int64_t> known = Size(sizes[i]);
      if (known.value_or(size) != size) return false;
      if (!known) sizes_[sizes[i] - 'a'] = size;
    }
    return true;
  }

  // "mn" of "T[m,n]".
  static std::string SizesOf(std::string_view form) {
    std::string sizes;
    std::ranges::copy_if(form, std::back_inserter(sizes), [](char c) { return c >= 'a'; });
    return sizes;
  }
  // Null for one that is not known yet.
  std::optional<int64_t> Size(char name) const {
    switch (name) {
      case 'k':
        return std::min(*sizes_['m' - 'a'], *sizes_['n' - 'a']);
      case 'x':
        return std::max(*sizes_['m' - 'a'], *sizes_['n' - 'a']);
      case 'e':
        return std::max<int64_t>(*sizes_['n' - 'a'] - 1, 0);
      default:
        return sizes_[name - 'a'];
    }
  }
  ElementType TypeOf(char name) const {
    switch (name) {
      case 'I':
        return ElementType::kS32;
      case 'R':
        return hlo::RealType(type_);
      case 'C':
        return hlo::IsComplex(type_) ? type_ : hlo::ComplexType(type_);
      default:
        return type_;
    }
  }

  static std::string Name(const char* what, size_t index, const hlo::Shape& shape) {
    return std::string(what) + " " + std::to_string(index) + " is " + shape.ToString();
  }
  [[noreturn]] void Refuse(const std::string& why) const {
    throw hlo::Error(call_.as<hlo::CustomCallAttributes>().target + " takes and gives " +
                     std::string(form_.shapes) + " with " + hlo::ToString(batch_) +
                     " before each, and not: " + why + ", in " + call_.ToString());
  }

  const hlo::Instruction& call_;
  const Form& form_;
  ElementType type_;
  hlo::Dimensions batch_;
  std::array<std::optional<int64_t>, 26> sizes_;
};

// The rows that gehrd is to reduce, from 1.
void CheckRange(const hlo::Instruction& call) {
  const hlo::AttributeDictionary& given = call.as<hlo::CustomCallAttributes>().dictionary;
  const int64_t n = call.operand(0)->dimensions().back();
  const auto number = [&](const char* name, int64_t otherwise) {
    const auto found = given.find(name);
    if (found == given.end()) return otherwise;
    const auto* value = std::get_if<int64_t>(&found->second.value);
    return value == nullptr ? -1 : *value;
  };
  const int64_t low = number("low", 1), high = number("high", n);
  if (n > 0 && (low < 1 || high < low || high > n)) {
    throw hlo::Error(call.as<hlo::CustomCallAttributes>().target +
                     ": low and high are no rows of the matrix, in " + call.ToString());
  }
}

}  // namespace

void CheckLapackForm(const hlo::Instruction& call, std::string_view routine) {
  const auto& attributes = call.as<hlo::CustomCallAttributes>();
  const auto* form = std::ranges::find_if(
      kForms, [&](const Form& f) { return Serves(f, routine, attributes.dictionary); });
  if (form == std::end(kForms)) {
    throw hlo::Error(attributes.target + " does not have these attributes: " + call.ToString());
  }
  FormCheck(call, *form).Run();
  if (routine == "gehrd") CheckRange(call);
}

}  // namespace cpu

// Op<&f>: everything that one lowering function needs to be recorded.
//
// A lowering is a plain function
//
//   R f(hlo::Builder& b, P... parameters)
//
// whose parameters are, in any order,
//   operands:    hlo::Value, std::optional<hlo::Value>, std::vector<hlo::Value>,
//                std::vector<std::optional<hlo::Value>>, lazy::Scalar (a number passed at run
//                time), std::optional<lazy::Scalar>, lazy::Index, std::vector<lazy::Index>
//                (integers that are constants of the program until they vary)
//   attributes:  everything else: copyable, comparable by SameAttribute and hashable by
//                HashAttribute below
// and whose result R is one hlo::Value, a std::array, std::tuple or std::pair of them, or a
// std::vector of them (then their number may depend on shapes and attributes). A null result does
// not exist.
//
// Op<&f>::Record(operands, attributes) makes a node. Shapes are inferred by running f once on a
// scratch module for each (operand shapes, attributes) ever seen.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <complex>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "hlo/hash.h"
#include "lazy/node.h"
#include "lazy/operation.h"

namespace lazy {

// A number that reaches the program as data: a rank-0 value in the lowering.
struct Scalar {
  hlo::Value value = nullptr;
  operator hlo::Value() const { return value; }
};

// An index (Node::MakeIndex): a rank-0 s64 value in the lowering, a constant or not. The result's
// shape does not depend on it, and what the lowering makes of a constant is a special case of what
// it makes of any value: shapes are inferred from the latter.
struct Index {
  hlo::Value value = nullptr;
  operator hlo::Value() const { return value; }
  // Where it is a constant of the program.
  std::optional<int64_t> known() const {
    return value->IsConstant() ? std::optional(value->literal().AsInt()) : std::nullopt;
  }
};

// --- Attribute hashing

template <typename T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
uint64_t HashAttribute(const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<uint64_t>(static_cast<double>(value));
  } else {
    return static_cast<uint64_t>(value);
  }
}
inline uint64_t HashAttribute(const std::string& value) { return hlo::HashText(value); }
template <typename T>
uint64_t HashAttribute(const std::complex<T>& value) {
  return hlo::CombineHash(HashAttribute(value.real()), HashAttribute(value.imag()));
}
// A struct provides `uint64_t Hash() const`.
template <typename T>
  requires requires(const T& t) {
    { t.Hash() } -> std::convertible_to<uint64_t>;
  }
uint64_t HashAttribute(const T& value) {
  return value.Hash();
}
template <typename T>
uint64_t HashAttribute(const std::optional<T>& value);
template <typename T>
uint64_t HashAttribute(const std::vector<T>& values);
template <typename T, size_t n>
uint64_t HashAttribute(const std::array<T, n>& values);
template <typename... T>
uint64_t HashAttribute(const std::variant<T...>& value);
template <typename... T>
uint64_t HashAttribute(const std::tuple<T...>& values);
template <typename A, typename B>
uint64_t HashAttribute(const std::pair<A, B>& value);

template <typename T>
uint64_t HashAttribute(const std::optional<T>& value) {
  return value ? hlo::CombineHash(1, HashAttribute(*value)) : 0;
}
template <typename T>
uint64_t HashAttribute(const std::vector<T>& values) {
  uint64_t hash = values.size();
  for (const auto& value : values)
    hash = hlo::CombineHash(hash, HashAttribute(static_cast<T>(value)));
  return hash;
}
template <typename T, size_t n>
uint64_t HashAttribute(const std::array<T, n>& values) {
  uint64_t hash = n;
  for (const T& value : values) hash = hlo::CombineHash(hash, HashAttribute(value));
  return hash;
}
template <typename... T>
uint64_t HashAttribute(const std::variant<T...>& value) {
  return std::visit(
      [&](const auto& v) { return hlo::CombineHash(value.index(), HashAttribute(v)); }, value);
}
template <typename... T>
uint64_t HashAttribute(const std::tuple<T...>& values) {
  uint64_t hash = sizeof...(T);
  std::apply([&](const auto&... v) { ((hash = hlo::CombineHash(hash, HashAttribute(v))), ...); },
             values);
  return hash;
}
template <typename A, typename B>
uint64_t HashAttribute(const std::pair<A, B>& value) {
  return hlo::CombineHash(HashAttribute(value.first), HashAttribute(value.second));
}

// --- Attribute identity

// Whether two attributes are the same bits: NaN is itself, and 0 is not -0. A struct's == says that
// of the struct, which then has no floating-point numbers, or compares them by SameAttribute.
template <typename T>
bool SameAttribute(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
  } else {
    return a == b;
  }
}
template <typename T>
bool SameAttribute(const std::complex<T>& a, const std::complex<T>& b);
template <typename T>
bool SameAttribute(const std::optional<T>& a, const std::optional<T>& b);
template <typename T>
bool SameAttribute(const std::vector<T>& a, const std::vector<T>& b);
template <typename T, size_t n>
bool SameAttribute(const std::array<T, n>& a, const std::array<T, n>& b);
template <typename... T>
bool SameAttribute(const std::variant<T...>& a, const std::variant<T...>& b);
template <typename... T>
bool SameAttribute(const std::tuple<T...>& a, const std::tuple<T...>& b);
template <typename A, typename B>
bool SameAttribute(const std::pair<A, B>& a, const std::pair<A, B>& b);

template <typename T>
bool SameAttribute(const std::complex<T>& a, const std::complex<T>& b) {
  return SameAttribute(a.real(), b.real()) && SameAttribute(a.imag(), b.imag());
}
template <typename T>
bool SameAttribute(const std::optional<T>& a, const std::optional<T>& b) {
  return a.has_value() == b.has_value() && (!a || SameAttribute(*a, *b));
}
template <typename T>
bool SameAttribute(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return SameAttribute(x, y); });
}
template <typename T, size_t n>
bool SameAttribute(const std::array<T, n>& a, const std::array<T, n>& b) {
  return std::equal(a.begin(), a.end(), b.begin(),
                    [](const T& x, const T& y) { return SameAttribute(x, y); });
}
template <typename... T>
bool SameAttribute(const std::variant<T...>& a, const std::variant<T...>& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& x) { return SameAttribute(x, std::get<std::decay_t<decltype(x)>>(b)); }, a);
}
template <typename... T>
bool SameAttribute(const std::tuple<T...>& a, const std::tuple<T...>& b) {
  return [&]<size_t... i>(std::index_sequence<i...>) {
    return (SameAttribute(std::get<i>(a), std::get<i>(b)) && ...);
  }(std::index_sequence_for<T...>());
}
template <typename A, typename B>
bool SameAttribute(const std::pair<A, B>& a, const std::pair<A, B>& b) {
  return SameAttribute(a.first, b.first) && SameAttribute(a.second, b.second);
}

// --- Attribute text

template <typename T>
void AppendAttribute(std::string& out, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, hlo::ElementType>) {
    out += hlo::ShortName(value);
  } else if constexpr (std::is_enum_v<T>) {
    out += std::to_string(static_cast<int64_t>(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    out += std::to_string(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    out += value;
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    if (value)
      AppendAttribute(out, *value);
    else
      out += "none";
  } else if constexpr (requires {
                         value.begin();
                         value.end();
                       }) {
    out += "[";
    for (const auto& v : value) {
      if (out.back() != '[') out += ", ";
      AppendAttribute(out, static_cast<std::decay_t<decltype(v)>>(v));
    }
    out += "]";
  } else if constexpr (requires { out += value.ToString(); }) {
    out += value.ToString();
  } else {
    out += "…";
  }
}

// --- Reading a lowering's signature

template <typename P>
struct ParameterTraits {
  static constexpr bool kIsOperand = false;
  static constexpr bool kHasCount = false;
};
template <>
struct ParameterTraits<hlo::Value> {
  static constexpr bool kIsOperand = true;
  static constexpr bool kHasCount = false;  // always one value
};
template <>
struct ParameterTraits<Scalar> : ParameterTraits<hlo::Value> {};
template <>
struct ParameterTraits<Index> : ParameterTraits<hlo::Value> {};
template <>
struct ParameterTraits<std::optional<hlo::Value>> {
  static constexpr bool kIsOperand = true;
  static constexpr bool kHasCount = true;
};
template <>
struct ParameterTraits<std::optional<Scalar>> : ParameterTraits<std::optional<hlo::Value>> {};
template <>
struct ParameterTraits<std::vector<hlo::Value>> : ParameterTraits<std::optional<hlo::Value>> {};
template <>
struct ParameterTraits<std::vector<Index>> : ParameterTraits<std::optional<hlo::Value>> {};
template <>
struct ParameterTraits<std::vector<std::optional<hlo::Value>>>
    : ParameterTraits<std::optional<hlo::Value>> {};

template <typename P>
inline constexpr bool kIsOperand = ParameterTraits<P>::kIsOperand;

template <typename... T>
struct TypeList {};

// A list of types without the operands, as a tuple type.
template <typename Attributes, typename... P>
struct WithoutOperands;
template <typename... A, typename P, typename... Rest>
struct WithoutOperands<TypeList<A...>, P, Rest...>
    : WithoutOperands<std::conditional_t<kIsOperand<P>, TypeList<A...>, TypeList<A..., P>>,
                      Rest...> {};
template <typename... A>
struct WithoutOperands<TypeList<A...>> {
  using type = std::tuple<A...>;
};
template <typename... P>
using AttributesOf = typename WithoutOperands<TypeList<>, P...>::type;

// The attributes among the first parameters.
template <typename... P>
constexpr size_t AttributesBefore(size_t end, TypeList<P...>) {
  const bool is_operand[] = {kIsOperand<P>..., true};
  size_t count = 0;
  for (size_t i = 0; i < end; ++i) count += !is_operand[i];
  return count;
}

template <typename F>
struct LoweringTraits;
template <typename R, typename... P>
struct LoweringTraits<R (*)(hlo::Builder&, P...)> {
  using Result = R;
  using Parameters = TypeList<std::decay_t<P>...>;
  using ParameterTuple = std::tuple<std::decay_t<P>...>;
  using Attributes = AttributesOf<std::decay_t<P>...>;
  static constexpr size_t kParameterCount = sizeof...(P);
};

// Presence and number of each operand parameter that may vary: a list's length, with a mask of
// which entries of a list of optionals are there.
using OperandCounts = std::vector<uint32_t>;

// The flat operands of a node being recorded; collects on the stack.
class OperandList {
 public:
  void Add(Value value) {
    if (size_ < kInline) {
      inline_[size_] = std::move(value);
    } else {
      if (size_ == kInline) Spill();
      heap_.push_back(std::move(value));
    }
    ++size_;
  }
  void AddCount(uint32_t count) { counts_.push_back(count); }
  std::span<const Value> values() const {
    return size_ <= kInline ? std::span<const Value>(inline_.data(), size_) : heap_;
  }
  const OperandCounts& counts() const { return counts_; }

 private:
  static constexpr size_t kInline = 8;
  void Spill() {
    heap_.reserve(2 * kInline);
    for (Value& value : inline_) heap_.push_back(std::move(value));
  }
  std::array<Value, kInline> inline_;
  size_t size_ = 0;
  std::vector<Value> heap_;
  OperandCounts counts_;
};

std::vector<hlo::Value> inline FlattenResults(hlo::Value value) { return {value}; }
std::vector<hlo::Value> inline FlattenResults(std::vector<hlo::Value> values) { return values; }
template <typename... T>
std::vector<hlo::Value> FlattenResults(const std::tuple<T...>& values) {
  return std::apply([](auto... v) { return std::vector<hlo::Value>{v...}; }, values);
}
template <size_t n>
std::vector<hlo::Value> FlattenResults(const std::array<hlo::Value, n>& values) {
  return {values.begin(), values.end()};
}
inline std::vector<hlo::Value> FlattenResults(const std::pair<hlo::Value, hlo::Value>& values) {
  return {values.first, values.second};
}

// "xla::foo" → counters: made on first use, live for ever. See metrics.h.
std::atomic<int64_t>* OperationCounter(const std::string& name);
// "MaxPool2d" → "max_pool2d", from a compiler's spelling of a function template's instance.
std::string LoweringName(const char* pretty_function);

// Makes a node of `operation`.
Reference<Node> MakeNode(OperationReference operation, std::span<const Value> operands);

// A lowering with the operations interned for it. What there is to do depends only on the
// lowering's type F, so lowerings of one type share its code: there are several times as many
// lowerings as types.
template <typename F>
class OperationFamily {
 public:
  using Traits = LoweringTraits<F>;
  using Attributes = typename Traits::Attributes;

  // `name` is the lowering's: "max_pool2d".
  OperationFamily(F lowering, const std::string& name)
      : lowering_(lowering),
        kind_{.name = "aten::" + name, .counter = OperationCounter("xla::" + name)} {}

  // Throws hlo::Error when the lowering refuses the operands.
  Reference<Node> Record(const OperandList& operands, const Attributes& attributes) {
    return MakeNode(Intern(operands, attributes), operands.values());
  }

  OperationReference Intern(const OperandList& operands, const Attributes& attributes) {
    uint64_t hash = HashAttribute(attributes);
    for (const Value& value : operands.values()) {
      hash = hlo::CombineHash(hash, reinterpret_cast<uintptr_t>(value.shape_ref()) >> 4);
    }
    for (uint32_t count : operands.counts()) hash = hlo::CombineHash(hash, count);
    Key key{hash, *this, operands, attributes};
    return table_.Find<Key>(hash, key, &Equal, &Make);
  }

  OperationKind& kind() { return kind_; }

  // Of an operation of a family of this type.
  static const Attributes& AttributesOf(const Operation& operation) {
    return static_cast<const Typed&>(operation).attributes();
  }
  static const OperandCounts& CountsOf(const Operation& operation) {
    return static_cast<const Typed&>(operation).counts();
  }

 private:
  struct Key {
    uint64_t hash;
    const OperationFamily& family;
    const OperandList& operands;
    const Attributes& attributes;
  };

  class Typed final : public Operation {
   public:
    Typed(const Key& key, std::vector<ShapeRef> shapes)
        : Operation(&key.family.kind_, key.hash, std::move(shapes)),
          lowering_(key.family.lowering_),
          attributes_(key.attributes),
          counts_(key.operands.counts()) {
      InferResultShapes();
    }
    std::vector<hlo::Value> Lower(hlo::Builder& builder,
                                  std::span<const hlo::Value> operands) const override {
      return Call(builder, operands, typename Traits::Parameters());
    }
    std::string AttributesText() const override {
      std::string out;
      std::apply(
          [&](const auto&... a) {
            ((out += out.empty() ? "" : ", ", AppendAttribute(out, a)), ...);
          },
          attributes_);
      return out;
    }
    const Attributes& attributes() const { return attributes_; }
    const OperandCounts& counts() const { return counts_; }

   private:
    // Takes the parameters of one call off the lists, in order.
    struct Reader {
      std::span<const hlo::Value> operands;
      std::span<const uint32_t> counts;
      size_t operand = 0, count = 0;

      hlo::Value NextValue() { return operands[operand++]; }
      void Read(hlo::Value& out) { out = NextValue(); }
      void Read(Scalar& out) { out.value = NextValue(); }
      void Read(Index& out) { out.value = NextValue(); }
      void Read(std::vector<Index>& out) {
        out.resize(counts[count++]);
        for (Index& index : out) Read(index);
      }
      template <typename T>
      void Read(std::optional<T>& out) {
        if (counts[count++] != 0) Read(out.emplace());
      }
      void Read(std::vector<hlo::Value>& out) {
        uint32_t n = counts[count++];
        for (uint32_t i = 0; i < n; ++i) out.push_back(NextValue());
      }
      void Read(std::vector<std::optional<hlo::Value>>& out) {
        out.resize(counts[count++]);
        for (auto& value : out) {
          if (counts[count++] != 0) value = NextValue();
        }
      }
    };

    template <size_t attribute, typename P, typename... Rest>
    void Fill(Reader& reader, auto& tuple) const {
      constexpr size_t index = Traits::kParameterCount - 1 - sizeof...(Rest);
      if constexpr (kIsOperand<P>) {
        reader.Read(std::get<index>(tuple));
        if constexpr (sizeof...(Rest) > 0) Fill<attribute, Rest...>(reader, tuple);
      } else {
        std::get<index>(tuple) = std::get<attribute>(attributes_);
        if constexpr (sizeof...(Rest) > 0) Fill<attribute + 1, Rest...>(reader, tuple);
      }
    }

    template <typename... P>
    std::vector<hlo::Value> Call(hlo::Builder& builder, std::span<const hlo::Value> operands,
                                 TypeList<P...>) const {
      typename Traits::ParameterTuple parameters{};
      Reader reader{operands, counts_};
      if constexpr (sizeof...(P) > 0) Fill<0, P...>(reader, parameters);
      return FlattenResults(
          std::apply([&](const auto&... p) { return lowering_(builder, p...); }, parameters));
    }

    const F lowering_;
    const Attributes attributes_;
    const OperandCounts counts_;
  };

  static bool Equal(const Operation& operation, const Key& key) {
    const Typed& typed = static_cast<const Typed&>(operation);
    auto shapes = operation.operand_shapes();
    auto values = key.operands.values();
    if (shapes.size() != values.size()) return false;
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (shapes[i] != values[i].shape_ref()) return false;
    }
    return typed.counts() == key.operands.counts() &&
           SameAttribute(typed.attributes(), key.attributes);
  }
  static std::unique_ptr<Operation> Make(const Key& key) {
    std::vector<ShapeRef> shapes;
    for (const Value& value : key.operands.values()) shapes.push_back(value.shape_ref());
    return std::unique_ptr<Operation>(new Typed(key, std::move(shapes)));
  }

  const F lowering_;
  OperationKind kind_;
  OperationTable table_;
};

// The family of one lowering. Made on first use; lives for ever, because nodes outlive static
// objects.
template <auto f>
class Op {
 public:
  static OperationFamily<decltype(f)>& family() {
    static auto* family = new OperationFamily<decltype(f)>(f, LoweringName(Spelling()));
    return *family;
  }
  static Reference<Node> Record(
      const OperandList& operands,
      const typename LoweringTraits<decltype(f)>::Attributes& attributes) {
    return family().Record(operands, attributes);
  }
  // The name is the function's unless a registration gave another.
  static OperationKind& kind() { return family().kind(); }

 private:
  // With f, and nothing else, in it.
  static const char* Spelling() { return __PRETTY_FUNCTION__; }
};

}  // namespace lazy

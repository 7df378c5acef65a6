#include "hlo/lapack_call.h"

#include <algorithm>

#include "hlo/error.h"

namespace hlo::lapack {
namespace {

// Dimensions of a result: the operand's batch, then `last`.
Dimensions Batched(Value a, Dimensions last) {
  Dimensions dimensions(a->dimensions().begin(), a->dimensions().end() - 2);
  dimensions.insert(dimensions.end(), last.begin(), last.end());
  return dimensions;
}
Shape Batched(Value a, ElementType type, Dimensions last) {
  return Shape(type, Batched(a, std::move(last)));
}
int64_t Rows(Value a) { return a->shape().dimension(a->shape().rank() - 2); }
int64_t Columns(Value a) { return a->shape().dimension(a->shape().rank() - 1); }
int64_t Smaller(Value a) { return std::min(Rows(a), Columns(a)); }
bool IsComplexType(Value a) { return IsComplex(a->element_type()); }

AttributeValue Letter(char letter) {
  AttributeValue value;
  value.value = int64_t{letter};
  value.element_type = ElementType::kU8;
  return value;
}
AttributeValue Flag(bool flag) {
  AttributeValue value;
  value.value = flag;
  return value;
}
AttributeValue Real(double number) {
  AttributeValue value;
  value.value = number;
  value.element_type = ElementType::kF64;
  return value;
}

std::string Target(const std::string& routine, ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return "lapack_s" + routine + "_ffi";
    case ElementType::kF64:
      return "lapack_d" + routine + "_ffi";
    case ElementType::kC64:
      return "lapack_c" + routine + "_ffi";
    case ElementType::kC128:
      return "lapack_z" + routine + "_ffi";
    default:
      throw Error(ErrorCode::kUnimplemented,
                  "LAPACK's " + routine + " has no type " + std::string(ShortName(type)));
  }
}

std::vector<Value> Call(Builder& b, const std::string& routine, std::vector<Value> operands,
                        const std::vector<Shape>& results, AttributeDictionary dictionary) {
  CustomCallAttributes attributes;
  attributes.target = Target(routine, operands[0]->element_type());
  attributes.api_version = 4;
  attributes.dictionary = std::move(dictionary);
  std::vector<Value> values;
  if (operands[0]->shape().num_elements() == 0) {
    for (const Shape& shape : results) values.push_back(b.Zeros(shape));
    return values;
  }
  Shape shape = results.size() == 1 ? results[0] : Shape::Tuple(results);
  Value call = b.CustomCall(std::move(operands), shape, std::move(attributes));
  for (size_t i = 0; i < results.size(); ++i) {
    values.push_back(b.Result(call, static_cast<int64_t>(i)));
  }
  return values;
}

Shape Info(Value a) { return Batched(a, ElementType::kS32, {}); }

}  // namespace

std::vector<Value> Geqrf(Builder& b, Value a) {
  return Call(b, "geqrf", {a}, {a->shape(), Batched(a, a->element_type(), {Smaller(a)})}, {});
}

Value Orgqr(Builder& b, Value packed, Value tau) {
  const char* routine = IsComplexType(packed) ? "ungqr" : "orgqr";
  return Call(b, routine, {packed, tau}, {packed->shape()}, {})[0];
}

Value Ormqr(Builder& b, Value packed, Value tau, Value c, bool left, bool transpose) {
  const char* routine = IsComplexType(packed) ? "unmqr" : "ormqr";
  return Call(b, routine, {packed, tau, c}, {c->shape()},
              {{"left", Flag(left)}, {"transpose", Flag(transpose)}})[0];
}

std::vector<Value> Potrf(Builder& b, Value a, bool lower) {
  return Call(b, "potrf", {a}, {a->shape(), Info(a)}, {{"uplo", Letter(lower ? 'L' : 'U')}});
}

std::vector<Value> Getrf(Builder& b, Value a) {
  return Call(b, "getrf", {a}, {a->shape(), Batched(a, ElementType::kS32, {Smaller(a)}), Info(a)},
              {});
}

Svd Gesdd(Builder& b, Value a, SingularVectors vectors) {
  int64_t m = Rows(a), n = Columns(a), k = Smaller(a);
  bool all = vectors == SingularVectors::kAll;
  ElementType type = a->element_type();
  auto results =
      Call(b, "gesdd", {a},
           {a->shape(), Batched(a, RealType(type), {k}), Batched(a, type, {m, all ? m : k}),
            Batched(a, type, {all ? n : k, n}), Info(a)},
           {{"mode", Letter(all                                 ? 'A'
                            : vectors == SingularVectors::kThin ? 'S'
                                                                : 'N')}});
  return {results[2], results[1], results[3], results[4]};
}

Eigen Syevd(Builder& b, Value a, bool lower, bool vectors) {
  auto results = Call(b, IsComplexType(a) ? "heevd" : "syevd", {a},
                      {a->shape(), Batched(a, RealType(a->element_type()), {Columns(a)}), Info(a)},
                      {{"mode", Letter(vectors ? 'V' : 'N')}, {"uplo", Letter(lower ? 'L' : 'U')}});
  return {results[1], results[0], results[2]};
}

Eigen Geev(Builder& b, Value a, bool vectors) {
  ElementType type = a->element_type();
  Shape matrix(IsComplexType(a) ? type : ComplexType(type), a->dimensions());
  std::vector<Shape> shapes(IsComplexType(a) ? 1 : 2, Batched(a, type, {Columns(a)}));
  shapes.insert(shapes.end(), {matrix, matrix, Info(a)});
  auto results =
      Call(b, "geev", {a}, shapes,
           {{"compute_left", Letter('N')}, {"compute_right", Letter(vectors ? 'V' : 'N')}});
  Value info = results.back(), right = results[results.size() - 2];
  return {IsComplexType(a) ? results[0] : b.Complex(results[0], results[1]), right, info};
}

std::vector<Value> Sytrf(Builder& b, Value a, bool hermitian) {
  return Call(b, hermitian && IsComplexType(a) ? "hetrf" : "sytrf", {a},
              {a->shape(), Batched(a, ElementType::kS32, {Columns(a)}), Info(a)},
              {{"uplo", Letter('L')}});
}

Value Sytrs(Builder& b, Value ld, Value pivots, Value rhs, bool hermitian) {
  if (pivots->element_type() != ElementType::kS32) {
    throw Error("LAPACK's pivots are s32, not " + pivots->shape().ToString());
  }
  return Call(b, hermitian && IsComplexType(ld) ? "hetrs" : "sytrs", {ld, pivots, rhs},
              {rhs->shape()}, {{"uplo", Letter('L')}})[0];
}

std::vector<Value> LeastSquares(Builder& b, const std::string& driver, Value a, Value rhs,
                                double rcond) {
  return Call(
      b, driver, {a, rhs},
      {rhs->shape(), Info(a), Batched(a, RealType(a->element_type()), {Smaller(a)}), Info(a)},
      {{"rcond", Real(rcond)}});
}

}  // namespace hlo::lapack

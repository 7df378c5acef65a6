// The lists, enumerators and dimensions that the short forms of operations have.
#include "hlo/text_attribute_parser.h"

#include <algorithm>

#include "hlo/text_syntax.h"

namespace hlo::text {
namespace {

using bytecode::AttributeId;
using bytecode::FailAt;
using bytecode::NamedAttribute;
using bytecode::Type;
using bytecode::TypeKind;

}  // namespace

std::vector<int64_t> AttributeParser::ParseIntegers() {
  std::vector<int64_t> values;
  lexer_.Expect("[");
  while (!lexer_.Is("]")) {
    values.push_back(lexer_.TakeInteger());
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("]");
  return values;
}

AttributeId AttributeParser::ParseIntegerList() {
  std::vector<int64_t> values = ParseIntegers();
  return encoder_.Integers(values, {static_cast<int64_t>(values.size())});
}

AttributeId AttributeParser::ParsePairs() {
  std::vector<int64_t> values;
  lexer_.Expect("[");
  while (!lexer_.Is("]")) {
    size_t start = lexer_.offset();
    std::vector<int64_t> pair = ParseIntegers();
    if (pair.size() != 2) FailAt(start, "expected two numbers");
    values.insert(values.end(), pair.begin(), pair.end());
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("]");
  return encoder_.Integers(values, {static_cast<int64_t>(values.size() / 2), 2});
}

AttributeId AttributeParser::ParseBoolList() {
  std::string bytes;
  lexer_.Expect("[");
  while (!lexer_.Is("]")) {
    AppendPart(ElementType::kPred, bytes);
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("]");
  Type type = {.kind = TypeKind::kTensor,
               .dimensions = {static_cast<int64_t>(bytes.size())},
               .parts = {Element(ElementType::kPred)}};
  return TensorOf(encoder_.Intern(std::move(type)), bytes);
}

AttributeId AttributeParser::ParseEnumerator(std::string_view attribute) {
  const Enumeration& enumeration = EnumerationOfAttribute(attribute);
  Token token = lexer_.Take(TokenKind::kWord, "an enumerator");
  const auto* found = std::ranges::find(enumeration.enumerators, token.text).base();
  auto index = found - enumeration.enumerators.data();
  if (static_cast<size_t>(index) == enumeration.enumerators.size()) {
    FailAt(token.offset, "'" + std::string(token.text) + "' is not an enumerator of " +
                             std::string(enumeration.name));
  }
  return encoder_.Enumeration(enumeration.kind, enumeration.first + index);
}

AttributeId AttributeParser::ParseEnumerators(std::string_view attribute) {
  std::vector<AttributeId> parts;
  lexer_.Expect("[");
  while (!lexer_.Is("]")) {
    parts.push_back(ParseEnumerator(attribute));
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("]");
  return encoder_.Array(std::move(parts));
}

std::vector<NamedAttribute> AttributeParser::ConvolutionSide(std::string_view side,
                                                             std::string_view batch,
                                                             std::string_view feature,
                                                             char batch_letter,
                                                             char feature_letter) {
  size_t start = lexer_.offset();
  int64_t batch_dimension = -1, feature_dimension = -1, position = 0;
  std::vector<std::pair<int64_t, int64_t>> spatial;
  lexer_.Expect("[");
  while (!lexer_.Is("]")) {
    if (lexer_.Is(std::string_view(&batch_letter, 1))) {
      batch_dimension = position;
      lexer_.Advance();
    } else if (lexer_.Is(std::string_view(&feature_letter, 1))) {
      feature_dimension = position;
      lexer_.Advance();
    } else if (!lexer_.Accept("?")) {
      spatial.emplace_back(lexer_.TakeInteger(), position);
    }
    ++position;
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("]");
  if (batch_dimension < 0 || feature_dimension < 0) {
    FailAt(start, std::string("expected the dimensions ") + batch_letter + " and " +
                      feature_letter + " once each");
  }
  std::ranges::sort(spatial);
  std::vector<int64_t> dimensions;
  for (auto [number, dimension] : spatial) {
    if (number != static_cast<int64_t>(dimensions.size())) {
      FailAt(start, "the spatial dimensions are not numbered from 0");
    }
    dimensions.push_back(dimension);
  }
  auto name = [&](std::string_view of) {
    return Own(std::string(side) + "_" + std::string(of) + "_dimension");
  };
  auto count = static_cast<int64_t>(dimensions.size());
  return {{name(batch), encoder_.Integer(batch_dimension, ElementType::kS64)},
          {name(feature), encoder_.Integer(feature_dimension, ElementType::kS64)},
          {Own(std::string(side) + "_spatial_dimensions"), encoder_.Integers(dimensions, {count})}};
}

std::vector<NamedAttribute> AttributeParser::ParseConvolution() {
  std::vector<NamedAttribute> all = ConvolutionSide("input", "batch", "feature", 'b', 'f');
  auto append = [&all](const std::vector<NamedAttribute>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  lexer_.Expect("x");
  append(ConvolutionSide("kernel", "output_feature", "input_feature", 'o', 'i'));
  lexer_.Expect("->");
  append(ConvolutionSide("output", "batch", "feature", 'b', 'f'));
  return all;
}

}  // namespace hlo::text
